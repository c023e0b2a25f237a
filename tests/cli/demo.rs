//! `demo`, once on a server of its own and once on a given one.

use crate::program::{Program, command, run};
use serde_json::Value;
use std::{
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The processes whose command line names this directory.
fn processes_in(dir: &std::path::Path) -> Vec<String> {
    let ps = std::process::Command::new("ps").args(["-A", "-o", "args"]).output().expect("ps runs");
    let all = String::from_utf8_lossy(&ps.stdout).into_owned();
    let needle = dir.display().to_string();
    all.lines().filter(|line| line.contains(&needle)).map(str::to_owned).collect()
}

fn is_empty(dir: &std::path::Path) -> bool {
    files_in(dir).is_empty()
}

fn files_in(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("it is there");
    entries.map(|entry| entry.expect("it is read").path().display().to_string()).collect()
}

#[test]
fn the_demo_loses_nothing_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let ran = run(command().arg("demo").env("TMPDIR", dir.path()));
    assert_eq!(ran.code, 0, "{ran:?}");
    let row = |name: &str| {
        let line = ran.stdout.lines().find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name} in {ran:?}"));
        let number = line.split_whitespace().find_map(|word| word.parse::<u64>().ok());
        number.unwrap_or_else(|| panic!("a number in {line}"))
    };
    assert_eq!(row("lost"), 0);
    assert_eq!(row("enqueued") + row("joined"), row("deliveries"));
    assert_eq!(row("completed") + row("archived"), row("enqueued"));
    assert_eq!(row("crashed"), row("recovered"));
    assert_eq!((row("debounced"), row("poison")), (10, 3));
    for name in ["joined", "archived", "retried", "crashed", "refused", "jobs/s"] {
        assert!(row(name) > 0, "{name}: {ran:?}");
    }
    assert!(!ran.stdout.contains("WRONG"), "{ran:?}");
    let answers = ran.stdout.split("HGETALL 'sprag:{webhooks}:meta'").nth(1);
    assert!(answers.is_some_and(|answer| answer.contains("unfinished")), "{ran:?}");
    assert_eq!(processes_in(dir.path()), [""; 0]);
    assert!(is_empty(dir.path()));
}

#[tokio::test]
async fn on_a_given_server_the_demo_deletes_its_keys_and_no_other() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "mine", "k", "--id", "x"]);
    let verdict = sprag.object(&["--quiet", "demo"]);
    assert_eq!((&verdict["lost"], &verdict["deviations"]), (&0.into(), &Value::Array(Vec::new())));
    assert_eq!(sprag.object(&["job", "show", "mine", "x"])["state"], "pending");
    let mut connection = sprag.server.connection().await;
    let keys: Vec<String> =
        redis::cmd("KEYS").arg("sprag-demo*").query_async(&mut connection).await.expect("keys");
    assert_eq!(keys, [""; 0]);
    assert_eq!(sprag.error(2, &["--namespace", "mine", "demo"])["error"], "invalid");
}

#[test]
fn a_demo_that_is_killed_takes_its_processes_along() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut demo = command();
    demo.arg("demo").env("TMPDIR", dir.path());
    killed_leaves_nothing(demo, dir.path());
}

/// The parts end after the demo, and may write while their directory is deleted.
#[test]
fn a_directory_that_cannot_be_deleted_at_once_is_tried_again() {
    let (dir, fakes) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("another"));
    let (rm, tried) = (fakes.path().join("rm"), fakes.path().join("tried"));
    let tried = tried.display();
    let script = format!("#!/bin/sh\nmkdir {tried} && exit 1\nexec /bin/rm \"$@\"\n");
    std::fs::write(&rm, script).expect("written");
    std::fs::set_permissions(&rm, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", fakes.path().display(), std::env::var("PATH").expect("a PATH"));
    let mut demo = command();
    demo.arg("demo").env("TMPDIR", dir.path()).env("PATH", path);
    killed_leaves_nothing(demo, dir.path());
    assert!(fakes.path().join("tried").exists(), "the first `rm` failed");
}

fn killed_leaves_nothing(mut demo: Command, dir: &std::path::Path) {
    let mut demo = demo.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the demo runs");
    until(|| {
        let processes = processes_in(dir);
        let parts = processes.iter().filter(|line| line.contains("demo-part")).count();
        if parts < 5 { vec![format!("{parts} parts")] } else { Vec::new() }
    });
    demo.kill().expect("killed");
    demo.wait().expect("gone");
    until(|| [processes_in(dir), files_in(dir)].concat());
}

/// Starts a demo, sends it a signal so much later, and waits for its end.
fn interrupt(dir: &std::path::Path, url: Option<&str>, signal: &str, after: Duration) {
    let mut demo = command();
    demo.arg("demo").env("TMPDIR", dir).stdout(Stdio::null()).stderr(Stdio::null());
    demo.envs(url.map(|url| ("SPRAG_REDIS_URL", url)));
    let mut demo = demo.spawn().expect("it runs");
    std::thread::sleep(after);
    let mut kill = std::process::Command::new("kill");
    let sent = kill.args([signal, &demo.id().to_string()]).status().expect("`kill` runs");
    assert!(sent.success(), "it still ran");
    demo.wait().expect("gone");
    let what = format!("{signal} after {after:?}");
    assert!(is_empty(dir), "{what} left {:?}", std::fs::read_dir(dir).expect("read").next());
    // Only their end is awaited for: a killed process may be there for a moment.
    until(|| processes_in(dir));
}

#[test]
fn a_demo_that_is_told_to_end_leaves_nothing() {
    for signal in ["-HUP", "-INT", "-TERM"] {
        let dir = tempfile::tempdir().expect("a directory");
        let more: &[u64] = if signal == "-HUP" { &[500, 1_500, 3_000] } else { &[] };
        for ms in [0, 5, 10, 20, 40, 80, 150].iter().chain(more) {
            interrupt(dir.path(), None, signal, Duration::from_millis(*ms));
        }
    }
}

#[tokio::test]
async fn a_demo_that_is_told_to_end_leaves_no_keys_on_a_given_server() {
    let sprag = Program::start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let mut connection = sprag.server.connection().await;
    for ms in [0, 20, 50, 100, 200, 400, 1_000, 2_000, 3_000] {
        let url = sprag.server.url();
        interrupt(dir.path(), Some(&url), "-HUP", Duration::from_millis(ms));
        let keys: Vec<String> =
            redis::cmd("KEYS").arg("*").query_async(&mut connection).await.expect("keys");
        assert_eq!(keys, [""; 0], "after {ms} ms");
    }
}

/// Until nothing is in the way any more.
fn until(mut in_the_way: impl FnMut() -> Vec<String>) {
    let started = Instant::now();
    loop {
        let left = in_the_way();
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < crate::support::PATIENCE, "still {left:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Where there is no server to start, the tour is made in memory, and says what it leaves out.
#[tokio::test]
async fn a_demo_without_any_redis_is_a_shorter_tour_in_memory() {
    let mut demo = command();
    demo.arg("demo").env("PATH", "/nonexistent");
    let ran = run(&mut demo);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("Left out"), "{}", ran.stderr);
    let lost = ran.stdout.lines().find(|line| line.contains("lost")).expect("a row");
    assert_eq!(lost.split_whitespace().last(), Some("0"), "{lost}");
}
