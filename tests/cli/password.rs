//! A password that stands apart from the URL.

use crate::program::{Program, run, text};
use redis::cmd;
use serde_json::json;
use std::process::Command;
use tempfile::NamedTempFile;

const SECRET: &str = "p@ss/w0rd: ü";
const VARIABLE: &str = "SPRAG_REDIS_PASSWORD";
const FILE: &str = "SPRAG_REDIS_PASSWORD_FILE";

async fn locked() -> Program {
    let sprag = Program::start().await;
    let mut connection = sprag.server.connection().await;
    let mut set = cmd("CONFIG");
    set.arg("SET").arg("requirepass").arg(SECRET);
    set.query_async::<()>(&mut connection).await.expect("set");
    sprag
}

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    file
}

#[tokio::test]
async fn a_password_comes_from_the_environment_or_a_file() {
    let sprag = locked().await;
    let enqueue = || sprag.command(&["--json", "enqueue", "q", "k", "1"]);
    assert_eq!(run(&mut enqueue()).code, 1);
    assert_eq!(run(enqueue().env(VARIABLE, SECRET)).code, 0);
    for end in ["", "\n", "\r\n"] {
        let file = file(&format!("{SECRET}{end}"));
        assert_eq!(run(enqueue().env(FILE, file.path())).code, 0, "{end:?}");
    }
    let wrong = run(enqueue().env(VARIABLE, "s3cret"));
    assert!(wrong.code == 1 && !wrong.stderr.contains("s3cret"), "{wrong:?}");
    // That of the URL is the one that counts.
    let url = format!("{}?pass=s3cret", sprag.server.url());
    assert_eq!(run(enqueue().args(["--url", &url]).env(VARIABLE, SECRET)).code, 1);
    let demo = run(sprag.command(&["--json", "demo"]).env(VARIABLE, "s3cret"));
    assert!(demo.code == 1 && !demo.stderr.contains("s3cret"), "{demo:?}");
}

#[tokio::test]
async fn a_password_that_cannot_be_had_is_invalid() {
    let sprag = locked().await;
    let refused = |variables: &[(&str, &str)]| {
        let mut command = sprag.command(&["--json", "queue", "list"]);
        let ran = run(command.envs(variables.iter().copied()));
        assert_eq!((ran.code, &ran.error()["error"]), (2, &json!("invalid")), "{ran:?}");
        assert!(!ran.stderr.contains("s3cret"), "{ran:?}");
        text(&ran.error(), "message")
    };
    let (good, empty) = (file("s3cret\n"), file("\n"));
    let path = |file: &NamedTempFile| file.path().display().to_string();
    let both = refused(&[(VARIABLE, "s3cret"), (FILE, &path(&good))]);
    assert!(both.contains("must be one of the two"), "{both}");
    assert!(refused(&[(FILE, "/no/such/file")]).contains("cannot read /no/such/file"));
    assert!(refused(&[(FILE, &path(&empty))]).contains("no password in it"));
}

/// The library, in a process whose environment is this test's own.
#[tokio::test]
async fn a_client_from_the_environment_takes_it_too() {
    let sprag = locked().await;
    let child = |variables: &[(&str, &str)]| {
        let mut command = Command::new(std::env::current_exe().expect("a program"));
        command.args(["--exact", "password::child", "--ignored"]);
        command.env_remove(FILE).env_remove(VARIABLE).env("SPRAG_REDIS_URL", sprag.server.url());
        command.envs(variables.iter().copied()).output().expect("it runs").status.success()
    };
    assert!(child(&[(VARIABLE, SECRET)]));
    assert!(!child(&[]) && !child(&[(FILE, "/no/such/file")]));
}

#[tokio::test]
#[ignore = "run by a_client_from_the_environment_takes_it_too"]
async fn child() {
    let client = sprag::Client::from_env().expect("a client");
    client.store().queues().await.expect("let in");
}
