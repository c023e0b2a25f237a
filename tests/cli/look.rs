//! `queue` and `job`.

use crate::program::{Program, SPRAG, held, text};
use serde_json::json;
use std::process::Command;

#[tokio::test]
async fn a_queue_is_shown_with_all_its_counters() {
    let sprag = Program::start().await;
    assert_eq!(sprag.error(3, &["queue", "show", "q"])["error"], "not_found");
    let limited = sprag.object(&["queue", "limit", "q", "5"]);
    assert_eq!(limited, json!({ "queue": "q", "limit": 5 }));
    sprag.object(&["enqueue", "q", "k", "1"]);
    sprag.object(&["enqueue", "q", "k", "2", "--delay", "1h"]);
    sprag.claim("q");
    let mut info = sprag.object(&["queue", "show", "q"]);
    let expected = json!({
        "queue": "q", "pending": 0, "scheduled": 1, "active": 1, "retry": 0, "completed": 0,
        "archived": 0, "cancelled": 0, "quarantined": 0, "unfinished": 2, "limit": 5,
        "paused": false, "oldest_pending_ms": null, "completed_today": 0, "failed_today": 0,
    });
    assert_eq!(info.take(), expected);
    let lifted = sprag.object(&["queue", "limit", "q", "none"]);
    assert_eq!(lifted["limit"], json!(null));
    let table = sprag.run(&["queue", "show", "q"]).stdout;
    assert!(
        table.contains("unfinished       2") && table.contains("limit            none"),
        "{table}"
    );
    for bad in ["many", "-1", "99999999999999999999"] {
        assert_eq!(sprag.error(2, &["queue", "limit", "q", bad])["error"], "invalid", "{bad}");
    }
}

#[tokio::test]
async fn a_job_is_shown_from_its_enqueue_to_its_end() {
    let sprag = Program::start().await;
    assert_eq!(sprag.error(3, &["job", "show", "q", "x"])["error"], "not_found");
    let id = text(&sprag.object(&["enqueue", "q", "k", r#"{"a":1}"#, "--retention", "1h"]), "id");
    let show = ["job", "show", "q", &id];
    let pending = sprag.object(&show);
    assert_eq!((&pending["state"], &pending["payload"]), (&json!("pending"), &json!(null)));
    let with_payload = sprag.object(&[&show[..], &["--payload"]].concat());
    assert_eq!(with_payload["payload"], json!({ "a": 1 }));

    let (_, fence) = held(&sprag.claim("q"));
    let active = sprag.object(&show);
    assert_eq!(
        (active["worker"].as_str(), active["fence"].to_string()),
        (Some("w"), fence.clone())
    );
    assert!(active["lease_expires_at"].is_u64(), "{active}");

    sprag.object(&["complete", "q", &id, "--fence", &fence, "--result", r#"[1, {"b":2}]"#]);
    let done = sprag.object(&show);
    assert_eq!((&done["state"], &done["reason"]), (&json!("completed"), &json!("completed")));
    assert_eq!((&done["result"], &done["worker"]), (&json!([1, { "b": 2 }]), &json!("w")));
    assert!(done["ended_at"].is_u64() && done["evicted_at"].is_u64(), "{done}");
    let table = sprag.run(&show).stdout;
    assert!(table.lines().next().is_some_and(|line| line.contains(&id)), "{table}");
}

#[tokio::test]
async fn a_payload_in_a_table_is_the_stored_text() {
    let sprag = Program::start().await;
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    for payload in [&deep, "[1e400, 123456789012345678901234567890,  \"ü\"]"] {
        let enqueue = ["enqueue", "q", "k", payload, "--retention", "1h"];
        let id = text(&sprag.object(&enqueue), "id");
        let ran = sprag.run(&["job", "show", "q", &id, "--payload"]);
        assert!(ran.code == 0 && ran.stdout.contains(payload), "{ran:?}");
        assert_eq!(sprag.run(&["claim", "q", "--worker", "w"]).code, 0);
        let (_, fence) = held(&sprag.object(&["job", "show", "q", &id]));
        sprag.object(&["complete", "q", &id, "--fence", &fence, "--result", payload]);
        let ran = sprag.run(&["job", "show", "q", &id]);
        assert!(ran.code == 0 && ran.stdout.contains(payload), "{ran:?}");
    }
}

#[tokio::test]
async fn tables_are_not_wrapped_for_programs_and_ids_never_are() {
    let sprag = Program::start().await;
    let (queue, id, kind) = ("q".repeat(64), "i".repeat(128), "k".repeat(128));
    sprag.object(&["enqueue", &queue, &kind, "1", "--id", &id, "--partition", "a b c d"]);
    let show = ["job", "show", &queue, &id];
    let shown = sprag.run(&show).stdout;
    for whole in [&queue, &id, &kind] {
        assert!(shown.contains(whole), "{shown}");
    }
    // A terminal that does not know how wide it is, and a narrow one.
    for columns in [0, 20] {
        let typed = format!("stty cols {columns}; {SPRAG} {}", show.join(" "));
        let mut script = Command::new("script");
        script.args(["-qec", &typed, "/dev/null"]).env("SPRAG_REDIS_URL", sprag.server.url());
        let Ok(ran) = script.output() else { return };
        let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(shown.contains(&id) && shown.contains("pending"), "{columns}: {shown}");
    }
    let claimed = sprag.run(&["claim", &queue, "--worker", "w"]).stdout;
    assert_eq!(claimed.lines().count(), 2, "{claimed}");
    assert!(claimed.contains(&id) && claimed.contains(&kind), "{claimed}");
}

#[tokio::test]
async fn a_failure_is_shown_with_what_was_said() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "--id", "x"]);
    let (_, fence) = held(&sprag.claim("q"));
    sprag.object(&["retry", "q", "x", "--fence", &fence, "--error", "line\n\u{1b}[31mred"]);
    let shown = sprag.object(&["job", "show", "q", "x"]);
    let error = &shown["errors"][0];
    assert_eq!((&error["attempt"], &error["worker"]), (&json!(1), &json!("w")));
    assert_eq!(error["error"], "line\n\u{1b}[31mred");
    let table = sprag.run(&["job", "show", "q", "x"]).stdout;
    assert!(table.contains("attempt 1: line\\n") && !table.contains('\u{1b}'), "{table}");
}

#[tokio::test]
async fn a_cancelled_job_is_unchanged_the_second_time_and_its_holder_is_superseded() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "--id", "x"]);
    let (_, fence) = held(&sprag.claim("q"));
    let cancel = ["job", "cancel", "q", "x"];
    for changed in [true, false] {
        let expected = json!({ "id": "x", "queue": "q", "state": "cancelled", "changed": changed });
        assert_eq!(sprag.object(&cancel), expected);
    }
    sprag.error(8, &["complete", "q", "x", "--fence", &fence]);
    assert_eq!(sprag.error(3, &["job", "cancel", "q", "y"])["error"], "not_found");
    sprag.object(&["enqueue", "q", "k", "--id", "z", "--retention", "1h"]);
    let (_, fence) = held(&sprag.claim("q"));
    sprag.object(&["complete", "q", "z", "--fence", &fence]);
    assert_eq!(sprag.error(2, &["job", "cancel", "q", "z"])["error"], "invalid");
}
