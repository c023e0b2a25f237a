//! Faults from outside: no server, a wrong one, no reader, secrets in the wrong place.

use crate::program::{Program, Ran, SPRAG, command, run};
use serde_json::json;
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const SECRET: &str = "s3cret";

#[tokio::test]
async fn an_unreachable_server_is_exit_9_within_the_budget() {
    for url in ["redis://127.0.0.1:1", "redis+unix:///no/such/socket"] {
        let started = Instant::now();
        let ran = run(command().args(["--json", "--url", url, "queue", "show", "q"]));
        assert_eq!((ran.code, &ran.error()["error"]), (9, &json!("unavailable")), "{ran:?}");
        // The budget is 3 s.
        assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_key_of_another_type_is_exit_1() {
    let sprag = Program::start().await;
    let mut connection = sprag.server.connection().await;
    let mut set = redis::cmd("SET");
    set.arg("sprag:{q}:meta").arg("x").query_async::<()>(&mut connection).await.expect("set");
    assert_eq!(sprag.error(1, &["enqueue", "q", "k"])["error"], "backend");
}

#[tokio::test]
async fn a_password_in_a_url_is_never_printed() {
    let with_secret = |ran: &Ran| ran.stdout.contains(SECRET) || ran.stderr.contains(SECRET);
    for url in [
        "redis://u:s3cret@127.0.0.1:1",
        "redis://u:s3cret@127.0.0.1:bad",
        "redis://:s3cret@h:99999",
        "redis://u:s3cret@@@h/x",
        "http://u:s3cret@h",
        "redis+unix://u:s3cret@/no/socket",
    ] {
        for json in [&[][..], &["--json"]] {
            let flag = run(command().args(json).args(["--url", url, "queue", "show", "q"]));
            let variable =
                run(command().args(json).args(["queue", "show", "q"]).env("REDIS_URL", url));
            let logs = run(command()
                .args(["--url", url, "queue", "show", "q"])
                .env("RUST_LOG", "trace")
                .env("NO_COLOR", "1"));
            let misplaced = run(command().args(json).arg(url));
            let unknown = run(command().args(json).arg(format!("--urll={url}")));
            let demo = run(command().args(["--url", url, "demo"]));
            for ran in [flag, variable, logs, misplaced, unknown, demo] {
                assert!(ran.code > 0 && !with_secret(&ran), "{url}: {ran:?}");
            }
        }
        let help = run(command().arg("--help").env("SPRAG_REDIS_URL", url));
        assert!(help.code == 0 && !with_secret(&help), "{help:?}");
    }
}

#[tokio::test]
async fn a_broken_pipe_is_a_success() {
    let sprag = Program::start().await;
    let text: String = (0..1_000).map(|i| format!("\"{i:0200}\"\n")).collect();
    sprag.with_stdin(&["enqueue", "q", "k", "--from", "-"], text.as_bytes());
    let pipe = format!(
        "{{ {SPRAG} --json claim q --worker w --count 1000; echo $? >&2; }} | head -n 1 >/dev/null"
    );
    let ran =
        run(Command::new("sh").args(["-c", &pipe]).env("SPRAG_REDIS_URL", sprag.server.url()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "0\n"));

    // The same for help, and for a line that is too short for the pipe to notice in between.
    let mut child = command().arg("--help").stdout(Stdio::piped()).spawn().expect("it runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[tokio::test]
async fn flag_beats_environment_and_namespaces_do_not_meet() {
    let sprag = Program::start().await;
    sprag.object(&["--namespace", "a", "enqueue", "q", "k", "--id", "x"]);
    let show = ["--json", "job", "show", "q", "x"];
    assert_eq!(sprag.run(&show).code, 3);
    assert_eq!(run(sprag.command(&show).env("SPRAG_NAMESPACE", "a")).code, 0);
    let flag = [&["--namespace", "b"], &show[..]].concat();
    assert_eq!(run(sprag.command(&flag).env("SPRAG_NAMESPACE", "a")).code, 3);
    assert_eq!(run(sprag.command(&show).env("SPRAG_NAMESPACE", "a b")).code, 2);

    let url = sprag.server.url();
    let other = |name: &str| {
        let mut command = command();
        command.args(["queue", "show", "q", "--namespace", "a"]).env(name, &url);
        command
    };
    assert_eq!(run(&mut other("REDIS_URL")).code, 0);
    assert_eq!(run(other("REDIS_URL").env("SPRAG_REDIS_URL", "")).code, 0);
    assert_eq!(run(other("SPRAG_REDIS_URL").env("REDIS_URL", "redis://127.0.0.1:1")).code, 0);
    assert_eq!(run(other("REDIS_URL").args(["--url", "redis://127.0.0.1:1"])).code, 9);
}

#[tokio::test]
async fn memory_is_refused_with_the_reason() {
    let ran = run(command().args(["--json", "--url", "memory://", "enqueue", "q", "k"]));
    let message = ran.error()["message"].to_string();
    assert!(ran.code == 2 && message.contains("a process of its own"), "{ran:?}");
}

#[tokio::test]
async fn a_wrong_command_line_is_exit_2() {
    for args in [&[][..], &["no-such-command"], &["claim", "q"], &["complete", "q", "x"]] {
        assert_eq!(run(command().args(args)).code, 2, "{args:?}");
    }
    let ran = run(command().args(["--json", "no-such-command"]));
    let object =
        json!({ "error": "invalid", "message": "unrecognized subcommand 'no-such-command'" });
    assert_eq!((ran.error(), ran.stdout.as_str()), (object, ""));
}
