//! What somebody's hand has broken: the rest is shown, and what is broken is named.

use crate::program::{Program, text};
use redis::cmd;
use serde_json::json;

async fn set(sprag: &Program, key: &str, value: &str) {
    let mut connection = sprag.server.connection().await;
    let (mut del, mut set) = (cmd("DEL"), cmd("SET"));
    del.arg(key).query_async::<()>(&mut connection).await.expect("deleted");
    set.arg(key).arg(value).query_async::<()>(&mut connection).await.expect("set");
}

#[tokio::test]
async fn a_damaged_queue_hides_no_other() {
    let sprag = Program::start().await;
    for queue in ["a", "b", "c"] {
        sprag.object(&["enqueue", queue, "k", "1"]);
        sprag.object(&["quarantine", "add", queue, &"1".repeat(32)]);
    }
    set(&sprag, "sprag:{b}:scheduled", "by hand").await;
    set(&sprag, "sprag:{b}:quarantine", "by hand").await;
    for noun in ["queue", "quarantine"] {
        let ran = sprag.run(&["--json", noun, "list"]);
        let shown: Vec<_> = ran.objects().iter().map(|shown| text(shown, "queue")).collect();
        assert_eq!((ran.code, shown), (1, vec!["a".to_owned(), "c".to_owned()]), "{noun}: {ran:?}");
        let error = ran.error();
        assert_eq!((&error["error"], &error["queue"]), (&json!("backend"), &json!("b")));

        let ran = sprag.run(&[noun, "list"]);
        assert!(ran.code == 1 && ran.stdout.lines().count() == 3, "{ran:?}");
        assert!(ran.stderr.starts_with("sprag: queue b: backend: "), "{ran:?}");
        assert!(ran.stderr.contains(": WRONGTYPE "), "{ran:?}");
    }
}

#[tokio::test]
async fn an_enqueue_that_failed_half_way_tells_the_ids_to_repeat_it_with() {
    let sprag = Program::start().await;
    set(&sprag, "sprag:queues", "by hand").await;
    let error = sprag.error(1, &["enqueue", "q", "k", "1"]);
    assert_eq!(error["error"], "backend");
    let id = text(&error, "id");
    assert_eq!(sprag.object(&["job", "show", "q", &id])["state"], "pending");

    let ran = sprag.run(&["enqueue", "q", "k", "1"]);
    assert!(ran.code == 1 && ran.stderr.contains("the same command with --id "), "{ran:?}");
    for flags in [&[][..], &["--atomic"]] {
        let from = [&["--json", "enqueue", "q", "k", "--from", "-"], flags].concat();
        let error = sprag.with_stdin(&from, b"1\n\n2\n").error();
        let lines: Vec<_> = [0, 1].map(|job| error["jobs"][job]["line"].clone()).into();
        assert_eq!(lines, [json!(1), json!(3)], "{error}");
        let id = text(&error["jobs"][1], "id");
        assert_eq!(sprag.object(&["job", "show", "q", &id])["state"], "pending");
    }
}

#[tokio::test]
async fn tries_that_nobody_can_read_count_as_none() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1", "--id", "x"]);
    let fence = sprag.claim("q")["fence"].to_string();
    sprag.object(&["retry", "q", "x", "--fence", &fence, "--error", "e", "--delay", "1h"]);
    sprag.object(&["enqueue", "q", "k", "1", "--id", "y"]);
    let mut connection = sprag.server.connection().await;
    let mut hset = cmd("HSET");
    hset.arg("sprag:{q}:tries").arg("x").arg(b"\xff");
    hset.query_async::<()>(&mut connection).await.expect("set");
    sprag.object(&["job", "run", "q", "x"]);
    let claimed = sprag.run(&["--json", "claim", "q", "--worker", "w", "--count", "2"]).objects();
    let attempts: Vec<_> = claimed.iter().map(|job| (text(job, "id"), &job["attempt"])).collect();
    assert_eq!(attempts.len(), 2, "{claimed:?}");
    assert!(attempts.contains(&("x".to_owned(), &json!(0))), "{claimed:?}");
    assert_eq!(sprag.object(&["job", "show", "q", "x"])["crash"], 0);
}

#[tokio::test]
async fn an_undecodable_record_has_one_explanation() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1", "--id", "x"]);
    let mut connection = sprag.server.connection().await;
    let whole = format!("at=1 fp={} kind=k", "0".repeat(32));
    for record in ["", "garbage", "gar=bage\n1", "at=x kind=k\n1", "kind=k\n", &whole] {
        let mut hset = cmd("HSET");
        hset.arg("sprag:{q}:jobs").arg("x").arg(record);
        hset.query_async::<()>(&mut connection).await.expect("set");
        let shown = text(&sprag.object(&["job", "show", "q", "x"]), "undecodable");
        let listed = sprag.object(&["job", "list", "q"]);
        assert_eq!(text(&listed, "undecodable"), shown, "{record:?}");
    }
}
