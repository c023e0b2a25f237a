//! `job list`, and what operators do to one job or many.

use crate::program::{Program, SPRAG, text};
use serde_json::{Value, json};
use std::process::Command;

fn ids(jobs: &[Value]) -> Vec<String> {
    jobs.iter().map(|job| text(job, "id")).collect()
}

#[tokio::test]
async fn jobs_are_listed_by_state_and_kind_and_page_by_page() {
    let sprag = Program::start().await;
    assert_eq!(sprag.objects(&["job", "list", "q"]).len(), 0);
    assert_eq!(sprag.run(&["job", "list", "q"]).stderr, "no such jobs\n");
    for id in ["a", "b", "c"] {
        sprag.object(&["enqueue", "q", "k", "1", "--id", id]);
    }
    sprag.object(&["enqueue", "q", "other", "1", "--id", "d"]);
    sprag.object(&["enqueue", "q", "k", "1", "--id", "later", "--delay", "1h"]);
    sprag.object(&["job", "cancel", "q", "c"]);
    sprag.claim("q");

    let all = sprag.objects(&["job", "list", "q"]);
    assert_eq!(ids(&all), ["later", "b", "d", "a", "c"]);
    let states: Vec<_> = all.iter().map(|job| text(job, "state")).collect();
    assert_eq!(states, ["scheduled", "pending", "pending", "active", "cancelled"]);
    assert!(all[0]["due_at"].is_u64() && all[3]["lease_expires_at"].is_u64(), "{all:?}");
    assert!(all[4]["evicted_at"].is_u64() && all[1]["enqueued_at"].is_u64(), "{all:?}");
    let some = |flags: &[&str]| ids(&sprag.objects(&[&["job", "list", "q"], flags].concat()));
    assert_eq!(some(&["--state", "pending"]), ["b", "d"]);
    assert_eq!(some(&["--kind", "other"]), ["d"]);
    assert_eq!(some(&["--kind", "k", "--state", "active"]), ["a"]);

    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut args = vec!["job", "list", "q", "--limit", "2"];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let mut page = sprag.objects(&args);
        let next = page.last().and_then(|last| last["cursor"].as_str().map(str::to_owned));
        page.truncate(page.len() - usize::from(next.is_some()));
        assert!(page.len() <= 2, "{page:?}");
        seen.extend(ids(&page));
        cursor = next;
        if cursor.is_none() {
            break;
        }
        assert!(!cursor.as_ref().is_some_and(|word| word.contains(' ')), "{cursor:?}");
    }
    assert_eq!(seen, ["later", "b", "d", "a", "c"]);

    let table = sprag.run(&["job", "list", "q", "--limit", "2"]);
    assert_eq!(table.stdout.lines().count(), 3, "{table:?}");
    assert!(table.stderr.contains("--cursor 'pending:4+"), "{table:?}");
    for bad in [
        vec!["--state", "lost"],
        vec!["--limit", "0"],
        vec!["--cursor", "?"],
        vec!["--cursor", "active:", "--state", "pending"],
        vec!["--cursor", "active:x y z"],
    ] {
        let args = [&["job", "list", "q"], &bad[..]].concat();
        assert_eq!(sprag.error(2, &args)["error"], "invalid", "{bad:?}");
    }
}

#[tokio::test]
async fn each_verb_tells_whether_it_changed_a_job_and_is_refused_by_the_state() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1", "--id", "x", "--delay", "1h"]);
    for (verb, state, again) in [
        ("run", json!("pending"), Some(false)),
        ("archive", json!("archived"), Some(false)),
        ("rerun", json!("pending"), Some(false)),
        ("cancel", json!("cancelled"), Some(false)),
        ("delete", json!(null), None),
    ] {
        let args = ["job", verb, "q", "x"];
        let expected = json!({ "id": "x", "queue": "q", "state": state, "changed": true });
        assert_eq!(sprag.object(&args), expected);
        match again {
            Some(changed) => assert_eq!(sprag.object(&args)["changed"], changed, "{verb}"),
            None => assert_eq!(sprag.error(3, &args)["error"], "not_found"),
        }
    }
    sprag.object(&["enqueue", "q", "k", "1", "--id", "y", "--unique", "u"]);
    sprag.claim("q");
    for verb in ["run", "rerun", "delete"] {
        assert_eq!(sprag.error(2, &["job", verb, "q", "y"])["error"], "invalid", "{verb}");
    }
    sprag.object(&["job", "cancel", "q", "y"]);
    sprag.object(&["enqueue", "q", "k", "1", "--id", "z", "--unique", "u"]);
    assert_eq!(sprag.error(4, &["job", "rerun", "q", "y"])["existing_id"], "z");
    let ran = sprag.run(&["job", "delete", "q", "y"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "y: deleted\n"));
    let ran = sprag.run(&["job", "cancel", "q", "z"]);
    assert_eq!(ran.stderr, "z: cancelled\n");
    let ran = sprag.run(&["job", "cancel", "q", "z"]);
    assert_eq!(ran.stderr, "z: unchanged: it was cancelled before\n");
}

#[tokio::test]
async fn many_jobs_are_steered_at_once_if_that_is_confirmed() {
    let sprag = Program::start().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    let lines: String = (0..450).map(|i| format!("{i}\n")).collect();
    std::fs::write(file.path(), lines).expect("written");
    let path = file.path().display().to_string();
    for kind in ["a", "b"] {
        sprag.object(&["enqueue", "q", kind, "--from", &path]);
    }
    let cancel = ["job", "cancel", "q", "--state", "pending", "--kind", "a", "--all"];
    let refused = sprag.error(2, &cancel);
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("--yes")), "{refused}");
    assert_eq!(sprag.object(&["queue", "show", "q"])["pending"], 900);
    let done = sprag.object(&[&["--yes"], &cancel[..]].concat());
    let expected = json!({
        "queue": "q", "operation": "cancel", "state": "pending", "kind": "a", "changed": 450,
        "unchanged": 0, "left": 0, "refused": 0,
    });
    assert_eq!(done, expected);
    let again = sprag.object(&[&["--yes"], &cancel[..]].concat());
    assert_eq!(again["changed"], 0);
    let ran = sprag.run(&["--yes", "job", "delete", "q", "--state", "cancelled", "--all"]);
    let told = "delete of cancelled jobs: 450 changed, 0 unchanged, 0 left meanwhile, 0 refused\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (0, told));
    let info = sprag.object(&["queue", "show", "q"]);
    assert_eq!((&info["pending"], &info["cancelled"]), (&json!(450), &json!(0)));

    for bad in [
        vec!["q"],
        vec!["q", "--all"],
        vec!["q", "--state", "pending"],
        vec!["q", "x", "--state", "pending", "--all"],
        vec!["q", "--state", "completed", "--all"],
    ] {
        let args = [&["--yes", "job", "cancel"], &bad[..]].concat();
        assert_eq!(sprag.error(2, &args)["error"], "invalid", "{bad:?}");
    }
}

#[tokio::test]
async fn a_refused_one_of_many_is_told_and_gives_the_exit_code() {
    let sprag = Program::start().await;
    for (id, key) in [("x", "u"), ("y", "v")] {
        sprag.object(&["enqueue", "q", "k", "1", "--id", id, "--unique", key]);
        sprag.object(&["job", "archive", "q", id]);
    }
    sprag.object(&["enqueue", "q", "k", "1", "--id", "z", "--unique", "u"]);
    let rerun = ["--yes", "job", "rerun", "q", "--state", "archived", "--all"];
    let ran = sprag.run(&[&["--json"], &rerun[..]].concat());
    let told = ran.objects();
    assert_eq!((ran.code, told.len()), (4, 2), "{ran:?}");
    assert_eq!((&told[0]["error"], &told[0]["id"]), (&json!("duplicate"), &json!("x")));
    assert_eq!((&told[1]["changed"], &told[1]["refused"]), (&json!(1), &json!(1)));
    let ran = sprag.run(&rerun);
    assert_eq!((ran.code, ran.stderr.as_str()), (4, "x: the unique key is held by job z\n"));
}

#[tokio::test]
async fn on_a_terminal_it_is_asked_for() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1"]);
    for (answer, code, pending) in [("n", 1, 1), ("y", 0, 0)] {
        let typed = format!("{SPRAG} job cancel q --state pending --all");
        let mut script = Command::new("script");
        script.args(["-qefc", &typed, "/dev/null"]).env("SPRAG_REDIS_URL", sprag.server.url());
        script.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let Ok(mut child) = script.spawn() else { return };
        use std::io::Write;
        let mut stdin = child.stdin.take().expect("a pipe");
        writeln!(stdin, "{answer}").expect("it reads");
        let ran = child.wait_with_output().expect("it ends");
        let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(shown.contains("cancel all pending jobs of queue q? [y/N]"), "{shown}");
        assert_eq!(ran.status.code(), Some(code), "{shown}");
        assert_eq!(sprag.object(&["queue", "show", "q"])["pending"], pending);
    }
}

#[tokio::test]
async fn a_wait_ends_with_the_job_and_says_how_it_ended() {
    let sprag = Program::start().await;
    for id in ["done", "stopped", "waiting"] {
        sprag.object(&["enqueue", "q", "k", "1", "--id", id, "--retention", "1h"]);
    }
    let held = sprag.claim("q");
    let fence = held["fence"].to_string();
    let mut wait = sprag.command(&["--json", "job", "wait", "q", "done"]);
    let waiting = std::thread::spawn(move || crate::program::run(&mut wait));
    sprag.object(&["complete", "q", "done", "--fence", &fence]);
    let waited = waiting.join().expect("no panic");
    assert_eq!(waited.code, 0, "{waited:?}");
    assert_eq!(waited.objects()[0]["state"], "completed");

    // Of one that is not kept the end is known all the same, if it was waited for before.
    sprag.object(&["enqueue", "short", "k", "1", "--id", "unkept"]);
    let held = sprag.claim("short");
    let fence = held["fence"].to_string();
    let mut wait = sprag.command(&["--json", "job", "wait", "short", "unkept"]);
    let waiting = std::thread::spawn(move || crate::program::run(&mut wait));
    let mut connection = sprag.server.connection().await;
    let started = std::time::Instant::now();
    loop {
        let mut calls = redis::cmd("INFO");
        let calls: String =
            calls.arg("commandstats").query_async(&mut connection).await.expect("stats");
        // The wait has listened, and looked at the job.
        let subscribed = calls.contains("cmdstat_subscribe:calls=2");
        let mut watched = redis::cmd("HEXISTS");
        watched.arg("sprag:{short}:meta").arg("watched");
        if subscribed && watched.query_async::<bool>(&mut connection).await.expect("asked") {
            break;
        }
        assert!(started.elapsed() < crate::support::PATIENCE, "not in time: {calls}");
    }
    sprag.object(&["complete", "short", "unkept", "--fence", &fence]);
    let waited = waiting.join().expect("no panic");
    let unkept = json!({ "id": "unkept", "queue": "short", "state": "completed" });
    // Unless the end came between the two: then it is gone.
    assert!(waited.code == 3 || (waited.code, waited.objects()) == (0, vec![unkept]), "{waited:?}");

    sprag.object(&["job", "cancel", "q", "stopped"]);
    let waited = sprag.run(&["--json", "job", "wait", "q", "stopped"]);
    assert_eq!((waited.code, &waited.objects()[0]["state"]), (1, &json!("cancelled")));
    let waited = sprag.run(&["--json", "job", "wait", "q", "waiting", "--timeout", "60ms"]);
    assert!(waited.code == 1 && waited.stderr.contains("60ms"), "{waited:?}");
    assert_eq!(sprag.run(&["--json", "job", "wait", "q", "nobody"]).code, 3);
}
