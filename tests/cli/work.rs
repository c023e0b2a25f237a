//! `sprag work --exec`: what commands are given, what their ends mean, and that none is left behind.

use crate::{
    program::{Program, Ran, SPRAG},
    support::PATIENCE,
};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

impl Program {
    fn add(&self, id: &str, options: &[&str]) {
        self.object(&[&["enqueue", "q", "k", "{\"n\":1}", "--id", id], options].concat());
    }

    /// Runs what there is.
    fn work(&self, exec: &str, options: &[&str]) -> Ran {
        let base = ["--json", "work", "q", "--until-empty", "--exec", exec];
        let ran = self.run(&[&base, options].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    /// A worker that goes on.
    fn working(&self, exec: &str, options: &[&str]) -> Child {
        let base = ["--json", "work", "q", "--exec", exec];
        let mut command = self.command(&[&base, options].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts")
    }

    fn show(&self, id: &str) -> Value {
        self.object(&["job", "show", "q", id])
    }

    fn until(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        wait_for(id, || Some(self.show(id)).filter(|shown| is_so(shown)))
    }
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn read(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok().filter(|text| text.ends_with('\n'))
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("`kill` runs").success());
}

fn ended(child: Child) -> Value {
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one object")
}

fn lives(pid: &str) -> bool {
    // A zombie has ended.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_command_is_given_the_payload_and_what_there_is_to_know() {
    let sprag = Program::start().await;
    sprag.add(
        "a",
        &[
            "--retention",
            "1h",
            "--header",
            "traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ],
    );
    let exec = r#"cat; echo "|$SPRAG_ID|$SPRAG_KIND|$SPRAG_QUEUE|$SPRAG_FENCE|$SPRAG_ATTEMPT|$SPRAG_CRASH|$TRACEPARENT""#;
    let done: Value = serde_json::from_str(&sprag.work(exec, &[]).stdout).expect("json");
    assert_eq!(done["completed"], 1);
    let shown = sprag.show("a");
    let said = shown["result"].as_str().expect("a text").to_owned();
    let parts: Vec<&str> = said.split('|').collect();
    assert_eq!(parts[..4], ["{\"n\":1}", "a", "k", "q"]);
    assert!(parts[4].parse::<u64>().is_ok_and(|fence| fence > 1_700_000_000_000_000), "{said}");
    assert_eq!(parts[5..7], ["0", "0"]);
    assert!(parts[7].starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"), "{said}");
}

#[tokio::test]
async fn how_a_command_ends_says_what_becomes_of_its_job() {
    let sprag = Program::start().await;
    let cases = [("json", "0"), ("odd", "65"), ("later", "75"), ("wrong", "1"), ("killed", "sig")];
    for (id, _) in cases {
        sprag.add(id, &["--retention", "1h"]);
    }
    let exec = r#"case $SPRAG_ID in
        json) echo '{"ok": [1]}';;
        odd) echo 'no such field' >&2; exit 65;;
        later) exit 75;;
        wrong) echo 'the first line' >&2; echo 'no such user' >&2; exit 1;;
        killed) kill -9 $$;;
    esac"#;
    sprag.work(exec, &["--snooze", "1h"]);
    let [json, odd, later, wrong, killed] = cases.map(|(id, _)| sprag.show(id));
    assert_eq!((&json["state"], &json["result"]), (&json!("completed"), &json!({"ok": [1]})));
    assert_eq!((&odd["state"], &odd["reason"]), (&json!("archived"), &json!("undecodable")));
    assert!(odd["errors"][0]["error"].as_str().is_some_and(|e| e.contains("no such field")));
    assert_eq!((&later["state"], &later["attempt"]), (&json!("scheduled"), &json!(0)));
    assert_eq!((&wrong["state"], &wrong["attempt"]), (&json!("retry"), &json!(1)));
    let text = wrong["errors"][0]["error"].as_str().expect("a text");
    assert_eq!(text, "the first line\nno such user\n(exit code 1)");
    assert_eq!(killed["errors"][0]["error"], "killed by signal 9");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_told_to_stop_and_then_killed() {
    let sprag = Program::start().await;
    sprag.add("a", &["--timeout", "300ms"]);
    let deaf = "trap '' TERM; echo heard >&2; while :; do sleep 0.05; done";
    sprag.work(deaf, &["--kill-after", "200ms"]);
    let shown = sprag.show("a");
    assert_eq!((&shown["state"], &shown["attempt"]), (&json!("retry"), &json!(1)));
    let text = shown["errors"][0]["error"].as_str().expect("a text");
    assert!(text.starts_with("timed out after 300ms: heard"), "{text}");
    assert!(text.contains("signal 9"), "{text}");
}

#[tokio::test]
async fn a_program_that_the_command_runs_may_clean_up_when_it_is_told_to_stop() {
    let (sprag, dir) = (Program::start().await, tempfile::tempdir().expect("a folder"));
    sprag.add("a", &["--timeout", "300ms"]);
    let (script, file) = (dir.path().join("program"), dir.path().join("cleaned"));
    let text = format!("trap 'sleep 0.3; echo > {}; exit 1' TERM; sleep 9 & wait", file.display());
    std::fs::write(&script, text).expect("written");
    // Not by `exec`: the shell dies of the signal at once.
    sprag.work(&format!("sh {}; true", script.display()), &["--kill-after", "10s"]);
    assert!(read(&file).is_some());
}

#[tokio::test]
async fn what_was_printed_counts_though_something_that_left_holds_the_pipe() {
    let sprag = Program::start().await;
    sprag.add("a", &["--retention", "1h"]);
    sprag.work("setsid sleep 5 & sleep 0.2; echo hi", &[]);
    assert_eq!(sprag.show("a")["result"], "hi");
}

#[tokio::test]
async fn a_worker_that_ends_by_itself_is_listed_no_more() {
    let sprag = Program::start().await;
    sprag.add("a", &[]);
    sprag.work("true", &[]);
    assert_eq!(sprag.objects(&["worker", "list"]).len(), 0);
}

#[tokio::test]
async fn a_worker_whose_terminal_is_closed_drains() {
    let (sprag, dir) = (Program::start().await, tempfile::tempdir().expect("a folder"));
    sprag.add("a", &["--retention", "1h"]);
    let file = dir.path().join("started");
    let worker = sprag.working(&format!("echo > {}; sleep 0.5", file.display()), &[]);
    wait_for("a start", || read(&file));
    signal(&worker, "-HUP");
    assert_eq!(ended(worker)["completed"], 1);
}

#[tokio::test]
async fn what_a_command_leaves_running_is_killed_with_its_group() {
    let (sprag, dir) = (Program::start().await, tempfile::tempdir().expect("a folder"));
    sprag.add("a", &[]);
    let file = dir.path().join("pid");
    let started = Instant::now();
    sprag.work(&format!("sleep 600 & echo $! > {}", file.display()), &[]);
    assert!(started.elapsed() < Duration::from_secs(60), "it waits for nobody's child");
    let pid = read(&file).expect("written");
    wait_for("the grandchild's end", || (!lives(&pid)).then_some(()));
}

#[tokio::test]
async fn what_prints_without_end_fills_nothing() {
    let sprag = Program::start().await;
    for id in ["a", "b"] {
        sprag.add(id, &["--retention", "1h"]);
    }
    let exec = r#"[ $SPRAG_ID = a ] && exec head -c 300000 /dev/zero
        head -c 300000 /dev/zero | tr '\0' x >&2; echo the end >&2; exit 3"#;
    sprag.work(exec, &[]);
    let (a, b) = (sprag.show("a"), sprag.show("b"));
    assert_eq!((&a["state"], &a["result"]), (&json!("completed"), &Value::Null));
    let text = b["errors"][0]["error"].as_str().expect("a text");
    assert!(text.ends_with("xthe end\n(exit code 3)") && text.len() <= 4_096, "{}", text.len());
}

#[tokio::test]
async fn the_lease_is_kept_while_a_command_runs() {
    let sprag = Program::start().await;
    sprag.add("a", &["--retention", "1h"]);
    sprag.work("sleep 1", &["--lease", "300ms"]);
    let shown = sprag.show("a");
    assert_eq!((&shown["state"], &shown["crash"]), (&json!("completed"), &json!(0)));
}

#[tokio::test]
async fn a_worker_that_is_told_to_end_puts_back_what_does_not_finish_and_leaves_no_orphan() {
    let (sprag, dir) = (Program::start().await, tempfile::tempdir().expect("a folder"));
    sprag.add("a", &[]);
    let file = dir.path().join("pids");
    let exec = format!("sleep 600 & echo $$ $! > {}; wait", file.display());
    let worker = sprag.working(&exec, &["--grace", "100ms"]);
    let pids = wait_for("a start", || read(&file));
    signal(&worker, "-TERM");
    assert_eq!(ended(worker)["requeued"], 1);
    let shown = sprag.show("a");
    assert_eq!((&shown["state"], &shown["attempt"]), (&json!("pending"), &json!(0)));
    for pid in pids.split_whitespace() {
        wait_for(pid, || (!lives(pid)).then_some(()));
    }
}

#[tokio::test]
async fn a_command_that_finishes_within_the_grace_completes() {
    let (sprag, dir) = (Program::start().await, tempfile::tempdir().expect("a folder"));
    sprag.add("a", &["--retention", "1h"]);
    sprag.add("b", &[]);
    let file = dir.path().join("started");
    let worker = sprag.working(&format!("echo > {}; sleep 1", file.display()), &[]);
    wait_for("a start", || read(&file));
    signal(&worker, "-TERM");
    assert_eq!(ended(worker)["completed"], 1);
    assert_eq!(sprag.show("a")["state"], "completed");
    assert_eq!(sprag.show("b")["state"], "pending");
}

#[tokio::test]
async fn a_cancelled_job_s_command_is_ended() {
    let (sprag, dir) = (Program::start().await, tempfile::tempdir().expect("a folder"));
    sprag.add("a", &[]);
    let file = dir.path().join("pid");
    let worker = sprag.working(&format!("echo $$ > {}; exec sleep 600", file.display()), &[]);
    let pid = wait_for("a start", || read(&file));
    sprag.object(&["job", "cancel", "q", "a"]);
    wait_for("the command's end", || (!lives(&pid)).then_some(()));
    assert_eq!(sprag.until("a", |shown| shown["state"] != "active")["state"], "cancelled");
    signal(&worker, "-TERM");
    ended(worker);
}

#[tokio::test]
async fn two_thousand_short_commands_leak_no_descriptor() {
    let sprag = Program::start().await;
    let lines: String = (0..2_000).map(|n| format!("{n}\n")).collect();
    sprag.with_stdin(&["enqueue", "q", "k", "--from", "-"], lines.as_bytes());
    // So few descriptors that a leak of one per command would end it soon.
    let script = format!("ulimit -n 128; exec {SPRAG} --json work q --exec true --concurrency 8");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("SPRAG_REDIS_URL", sprag.server.url());
    let worker = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_for("all to be done", || {
        (sprag.object(&["queue", "show", "q"])["unfinished"] == 0).then_some(())
    });
    signal(&worker, "-TERM");
    let done = ended(worker);
    assert_eq!((&done["completed"], &done["retried"]), (&json!(2_000), &json!(0)));
}

#[tokio::test]
async fn what_cannot_be_run_is_refused() {
    let sprag = Program::start().await;
    for (args, field) in [
        (&["work", "q=0", "--exec", "true"][..], "weight"),
        (&["work", "q=x", "--exec", "true"], "weight"),
        (&["work", "a b", "--exec", "true"], "queue"),
        (&["work", "q", "--exec", "true", "--lease", "5ms"], "lease"),
        (&["work", "--exec", "true"], "QUEUE"),
        (&["work", "q"], "exec"),
        (&["work", "q", "--exec", "true", "--until-empty", "--concurrency", "5"], "concurrency"),
    ] {
        let error = sprag.error(2, args);
        let message = error["message"].as_str().expect("a text");
        assert!(message.contains(field), "{args:?}: {message}");
    }
}

/// A timer's job that could do nothing must not look like one that had nothing to do.
#[tokio::test]
async fn a_store_that_ends_it_early_is_an_error() {
    let sprag = Program::start().await;
    sprag.add("a", &[]);
    let mut user = redis::cmd("ACL");
    user.arg(&["SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-zmscore"]);
    user.query_async::<()>(&mut sprag.server.connection().await).await.expect("set");
    let url = sprag.server.url() + "?user=u&pass=p";
    for (url, code, told) in [(&*url, 1, "ZMSCORE"), ("redis+unix:///no/such/socket", 9, "no/such")]
    {
        let started = Instant::now();
        let ran = sprag.run(&["--url", url, "work", "q", "--until-empty", "--exec", "true"]);
        let last = ran.stderr.lines().last().unwrap_or_default();
        assert!(ran.code == code && last.starts_with("sprag: ") && last.contains(told), "{ran:?}");
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    }
    assert_eq!(sprag.show("a")["state"], "pending");
}
