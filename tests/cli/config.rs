//! `sprag.toml`.

use crate::program::{Program, Ran, command, run, text};
use serde_json::json;
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;

/// The program in a folder of its own, told nothing by the environment.
fn within(folder: &Path, args: &[&str]) -> Command {
    let mut command = command();
    command.current_dir(folder).env("XDG_CONFIG_HOME", folder.join("own")).args(args);
    command
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir_all(folder.path().join("own/sprag")).expect("a folder");
    for (file, text) in files {
        fs::write(folder.path().join(file), text).expect("written");
    }
    folder
}

#[tokio::test]
async fn a_flag_beats_the_environment_that_beats_the_file() {
    let sprag = Program::start().await;
    let url = format!("url = \"{}\"\n", sprag.server.url());
    for namespace in ["flag", "environment", "file"] {
        sprag.object(&["--namespace", namespace, "enqueue", namespace, "k", "1"]);
    }
    let folder = folder(&[("sprag.toml", &format!("{url}namespace = \"file\"\njson = true\n"))]);
    let queue = |command: &mut Command| {
        let ran = run(command);
        assert_eq!(ran.code, 0, "{ran:?}");
        text(&ran.objects()[0], "queue")
    };
    let list = ["queue", "list"];
    let named = || within(folder.path(), &list);
    assert_eq!(queue(&mut named()), "file");
    assert_eq!(queue(named().env("SPRAG_NAMESPACE", "environment")), "environment");
    let flag = [&["--namespace", "flag"], &list[..]].concat();
    let mut command = within(folder.path(), &flag);
    assert_eq!(queue(command.env("SPRAG_NAMESPACE", "environment")), "flag");

    let nowhere = "redis://127.0.0.1:1";
    assert_eq!(run(named().env("REDIS_URL", nowhere)).code, 9);
    assert_eq!(run(&mut within(folder.path(), &["--url", nowhere, "queue", "list"])).code, 9);
    let ran = run(&mut within(folder.path(), &["--json=false", "queue", "list"]));
    assert!(ran.code == 0 && ran.stdout.contains("unfinished") || ran.stdout.contains("paused"));
    // Also of a command line that is refused.
    assert_eq!(run(&mut within(folder.path(), &["no-such"])).error()["error"], "invalid");
}

#[tokio::test]
async fn the_file_is_the_one_that_is_named_else_the_nearest() {
    let sprag = Program::start().await;
    let url = format!("url = \"{}\"\n", sprag.server.url());
    let file = |namespace: &str| format!("{url}namespace = \"{namespace}\"\njson = true\n");
    for namespace in ["flag", "variable", "here", "own"] {
        sprag.object(&["--namespace", namespace, "enqueue", namespace, "k", "1"]);
    }
    let folder = folder(&[
        ("flag.toml", &file("flag")),
        ("variable.toml", &file("variable")),
        ("sprag.toml", &file("here")),
        ("own/sprag/sprag.toml", &file("own")),
    ]);
    let list = |flags: &[&str], variable: &str| {
        let mut command = within(folder.path(), &[flags, &["queue", "list"]].concat());
        let ran = run(command.env("SPRAG_CONFIG", variable));
        text(&ran.objects()[0], "queue")
    };
    assert_eq!(list(&["--config", "flag.toml"], "variable.toml"), "flag");
    assert_eq!(list(&[], "variable.toml"), "variable");
    assert_eq!(list(&[], ""), "here");
    fs::remove_file(folder.path().join("sprag.toml")).expect("removed");
    assert_eq!(list(&[], ""), "own");
    let ran = run(within(folder.path(), &["queue", "list"]).env("SPRAG_CONFIG", "no.toml"));
    assert!(ran.code == 2 && ran.stderr.contains("SPRAG_CONFIG: no.toml"), "{ran:?}");
    for missing in [["--config", "no.toml"], ["--config=no.toml", "--json"]] {
        let ran = run(&mut within(folder.path(), &[&missing[..], &["queue", "list"]].concat()));
        assert!(ran.code == 2 && ran.stderr.contains("no.toml"), "{ran:?}");
    }
}

#[tokio::test]
async fn yes_and_quiet_may_stand_in_the_file() {
    let sprag = Program::start().await;
    let url = format!("url = \"{}\"\n", sprag.server.url());
    let folder = folder(&[("sprag.toml", &format!("{url}yes = true\nquiet = true\n"))]);
    let go = |args: &[&str]| run(&mut within(folder.path(), args));
    let quiet: Ran = go(&["enqueue", "q", "k", "1"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    go(&["enqueue", "q", "k", "2"]);
    let all = ["job", "cancel", "q", "--state", "pending", "--all"];
    assert_eq!(go(&[&["--yes=false"], &all[..]].concat()).code, 2);
    assert_eq!(go(&all).code, 0);
}

#[tokio::test]
async fn what_is_wrong_in_the_file_is_named_with_file_line_and_key() {
    for (text_of_file, line, words) in [
        ("\ncolour = 1\n", 2, "colour: unknown field"),
        ("json = true\nyes = \"no\"\n", 2, "yes: invalid type"),
        ("namespace = \"a b\"\n", 1, "namespace: invalid namespace"),
        ("quiet = true\nurl = \"http://u:s3cret@h\"", 2, "url: invalid url scheme"),
        ("url = \"redis://u:s3cret@h:x\"", 1, "url: invalid url"),
        ("json = \"redis://u:s3cret@h\"", 1, "json: invalid type"),
        ("url = \"redis://u:s3cret@h\nyes = 1", 1, "url: "),
        ("yes = true\nyes = true", 2, "yes: duplicate key"),
    ] {
        let folder = folder(&[("sprag.toml", text_of_file)]);
        let ran = run(&mut within(folder.path(), &["--json", "queue", "list"]));
        let error = ran.error();
        assert_eq!((ran.code, &error["error"]), (2, &json!("invalid")), "{ran:?}");
        let place = format!("sprag.toml, line {line}: {words}");
        assert!(text(&error, "message").contains(&place), "{place} in {error}");
        assert!(!ran.stderr.contains("s3cret"), "{ran:?}");
    }
}
