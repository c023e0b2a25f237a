//! Claimed jobs that cannot be written down are put back.

use crate::program::{Program, Ran, SPRAG, run, text};
use serde_json::{Value, json};
use std::{fs::File, process::Command};

/// More than a pipe holds.
fn fill(sprag: &Program) {
    let lines: String = (0..1_000).map(|i| format!("\"{i:0200}\"\n")).collect();
    sprag.with_stdin(&["enqueue", "q", "k", "--from", "-"], lines.as_bytes());
}

fn counts(sprag: &Program) -> (u64, u64) {
    let queue = sprag.object(&["queue", "show", "q"]);
    let count = |state: &str| queue[state].as_u64().expect("a number");
    (count("active"), count("pending"))
}

#[tokio::test]
async fn a_claim_onto_a_full_disk_holds_nothing_and_says_so() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1", "--id", "first"]);
    sprag.object(&["enqueue", "q", "k", "2", "--id", "second"]);
    let claim = |flags: &[&str]| {
        let mut command = sprag.command(&[flags, &["claim", "q", "--worker", "w"]].concat());
        command.args(["--count", "2"]).stdout(full.try_clone().expect("a file"));
        run(&mut command)
    };
    let ran = claim(&["--json"]);
    let error = ran.error();
    assert_eq!((ran.code, &error["error"]), (1, &json!("other")), "{ran:?}");
    assert!(text(&error, "message").starts_with("2 jobs could not be printed"), "{error}");
    assert_eq!(counts(&sprag), (0, 2));
    let ran = claim(&["--quiet"]);
    assert!(ran.code == 1 && ran.stderr.contains("2 jobs could not be printed"), "{ran:?}");
    assert_eq!(counts(&sprag), (0, 2));
    assert_eq!(sprag.claim("q")["id"], "first");
}

#[tokio::test]
async fn an_id_that_cannot_be_printed_is_told_with_the_error() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let sprag = Program::start().await;
    let mut enqueue = sprag.command(&["--json", "enqueue", "q", "k", "1", "--id", "mine"]);
    let ran = run(enqueue.stdout(full));
    let error = ran.error();
    assert_eq!((ran.code, &error["error"]), (1, &json!("other")), "{ran:?}");
    assert!(text(&error, "message").starts_with("job mine is enqueued: "), "{error}");
}

#[tokio::test]
async fn what_nobody_reads_on_is_put_back() {
    let sprag = Program::start().await;
    fill(&sprag);
    let claim = |flag: &str| {
        let pipe =
            format!("{{ {SPRAG} {flag} claim q --worker w --count 1000; echo $? >&2; }} | true");
        let mut shell = Command::new("sh");
        run(shell.args(["-c", &pipe]).env("SPRAG_REDIS_URL", sprag.server.url()))
    };
    let ran: Ran = claim("--json");
    let (warning, code) = ran.stderr.trim_end().split_once('\n').expect("two lines");
    let warning: Value = serde_json::from_str(warning).expect("an object");
    let requeued = warning["requeued"].as_u64().expect("a number");
    assert!(code == "0" && requeued > 0 && warning["held"] == 0, "{ran:?}");
    assert_eq!(counts(&sprag), (1_000 - requeued, requeued));

    let ran = claim("--quiet");
    assert!(ran.stderr.contains(&format!("{requeued} jobs could not be printed")), "{ran:?}");
    assert!(ran.stderr.ends_with("0\n"), "{ran:?}");
    assert_eq!(counts(&sprag), (1_000 - requeued, requeued));
}
