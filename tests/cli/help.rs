//! Completions, manual, and words that lead on.

use crate::program::{Program, SPRAG, command, run, text};
use serde_json::json;
use std::process::Command;

#[tokio::test]
async fn shells_complete_the_command_and_there_is_a_manual() {
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef sprag"), ("fish", "complete -c")]
    {
        let ran = run(command().args(["completions", shell]));
        assert!(ran.code == 0 && ran.stdout.contains(part), "{ran:?}");
        assert!(ran.stdout.contains("quarantine") && !ran.stdout.contains("demo-part"), "{shell}");
    }
    let ran = run(command().arg("man"));
    assert!(ran.code == 0 && ran.stdout.contains(".TH sprag 1"), "{ran:?}");
    let ran = run(command().args(["man", "job", "list"]));
    assert!(ran.stdout.contains("sprag\\-job\\-list") && ran.stdout.contains("cursor"), "{ran:?}");
    assert_eq!(run(command().args(["man", "job", "lost"])).code, 2);
    assert_eq!(run(command().args(["completions", "cobol"])).code, 2);
}

#[tokio::test]
async fn what_is_no_command_for_people_is_in_no_list() {
    for args in [&["--help"][..], &["--namespace", "n"], &["job"], &["no-such"]] {
        let ran = run(command().args(args));
        assert!(!(ran.stdout + &ran.stderr).contains("demo-part"), "{args:?}");
    }
}

#[tokio::test]
async fn a_flag_that_is_wrong_or_missing_is_named_as_one() {
    let sprag = Program::start().await;
    let message = |args: &[&str]| text(&sprag.error(2, args), "message");
    let twice = ["enqueue", "q", "k", "1", "--header", "a=1", "--header", "a=2"];
    assert_eq!(message(&twice), "invalid --header: a name is given twice; must be given once");
    let cancel = |flags: &[&str]| message(&[&["job", "cancel", "q"], flags].concat());
    assert!(cancel(&["--state", "pending"]).contains("add --all, or give an ID instead"));
    assert!(cancel(&[]).contains("give an ID, or --state S and --all"));
    assert!(cancel(&["--all"]).contains("give an ID, or --state S and --all"));
    assert!(cancel(&["x", "--kind", "k"]).contains("an ID stands alone"));
    let unasked = cancel(&["--state", "pending", "--all"]);
    assert!(unasked.starts_with("invalid --yes: is missing"), "{unasked}");
}

#[tokio::test]
async fn a_resume_makes_no_queue() {
    let sprag = Program::start().await;
    assert_eq!(sprag.error(3, &["queue", "resume", "typo"])["error"], "not_found");
    assert_eq!(sprag.objects(&["queue", "list"]).len(), 0);
}

#[tokio::test]
async fn a_wait_that_ends_too_early_or_comes_too_late_says_so() {
    let sprag = Program::start().await;
    let wait = ["job", "wait", "q", "x", "--timeout", "300ms"];
    sprag.object(&["enqueue", "q", "k", "1", "--id", "x"]);
    assert_eq!(sprag.error(1, &wait)["error"], "timed_out");
    let fence = sprag.claim("q")["fence"].to_string();
    sprag.object(&["complete", "q", "x", "--fence", &fence]);
    let gone = sprag.error(3, &wait);
    assert!(text(&gone, "message").contains("without a retention a completed job is gone"));

    let nowhere = ["--json", "--url", "redis://127.0.0.1:1"];
    let ran = run(command().args(nowhere).args(["job", "wait", "q", "x", "--timeout", "1s"]));
    assert_eq!((ran.code, &ran.error()["error"]), (9, &json!("unavailable")), "{ran:?}");
}

#[tokio::test]
async fn no_color_is_honoured_on_a_terminal() {
    for (no_color, coloured) in [("", true), ("1", false)] {
        let mut script = Command::new("script");
        script.args(["-qec", &format!("{SPRAG} --help"), "/dev/null"]);
        script.env("TERM", "xterm").env("NO_COLOR", no_color).env_remove("CLICOLOR");
        let Ok(ran) = script.output() else { return };
        let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(shown.contains("Usage:"), "{shown}");
        assert_eq!(shown.contains('\u{1b}'), coloured, "NO_COLOR={no_color}: {shown}");
    }
}
