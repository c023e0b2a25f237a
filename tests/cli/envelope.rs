//! `claim`, `job list` and `job show` tell all that the record holds.

use crate::program::Program;
use serde_json::{Value, json};

/// Every option of `enqueue` that the record holds; a throttle, for it goes with a time to be due.
const OPTIONS: [&str; 32] = [
    "--id",
    "x",
    "--unique",
    "u",
    "--throttle",
    "2h",
    "--any-kind",
    "--replace",
    "payload,priority",
    "--at",
    "2100-01-01T00:00:00Z",
    "--priority",
    "7",
    "--max-attempts",
    "3",
    "--timeout",
    "2m",
    "--deadline",
    "2101-01-01T00:00:00Z",
    "--retention",
    "1h",
    "--remember",
    "30m",
    "--partition",
    "acme",
    "--header",
    "a=1",
    "--header",
    "b=",
    "--codec",
    "json",
    "--join",
];

fn assert_all(object: &Value) {
    for (field, value) in [
        ("id", json!("x")),
        ("queue", json!("q")),
        ("kind", json!("k")),
        ("codec", json!("json")),
        ("version", json!(1)),
        ("run_at", json!(4_102_444_800_000_u64)),
        ("priority", json!(7)),
        ("max_attempts", json!(3)),
        ("timeout_ms", json!(120_000)),
        ("deadline_at", json!(4_133_980_800_000_u64)),
        ("retention_ms", json!(3_600_000)),
        ("remember_ms", json!(1_800_000)),
        ("partition", json!("acme")),
        ("headers", json!({ "a": "1", "b": "" })),
        (
            "unique",
            json!({ "key": "u", "any_kind": true, "mode": "throttle", "window_ms": 7_200_000 }),
        ),
    ] {
        assert_eq!(object[field], value, "{field} of {object}");
    }
    assert!(object["enqueued_at"].is_u64() && object["fingerprint"].is_string(), "{object}");
}

#[tokio::test]
async fn every_option_is_shown_by_all_who_show_a_job() {
    let sprag = Program::start().await;
    sprag.object(&[&["enqueue", "q", "k", "1"], &OPTIONS[..]].concat());
    assert_all(&sprag.object(&["job", "show", "q", "x"]));
    assert_all(&sprag.object(&["job", "list", "q"]));
    let table = sprag.run(&["job", "show", "q", "x"]).stdout;
    for shown in ["deadline_at   2101-01-01T00:00:00.000Z", "remember_ms", "throttle"] {
        assert!(table.contains(shown), "{shown} in {table}");
    }
    sprag.object(&["job", "run", "q", "x"]);
    let mut claimed = sprag.claim("q");
    // When it was to be due is over: the record may have forgotten it.
    claimed["run_at"] = json!(4_102_444_800_000_u64);
    assert_all(&claimed);
}

#[tokio::test]
async fn a_debounce_is_shown_with_its_longest_wait() {
    let sprag = Program::start().await;
    let debounce = ["--unique", "u", "--debounce", "50s", "--max-wait", "9m"];
    sprag.object(&[&["enqueue", "q", "k", "1"], &debounce[..]].concat());
    let unique = json!({
        "key": "u", "any_kind": false, "mode": "debounce", "window_ms": 50_000, "max_wait_ms": 540_000,
    });
    assert_eq!(sprag.object(&["job", "list", "q"])["unique"], unique);
}

#[tokio::test]
async fn a_key_that_is_not_utf_8_is_shown_as_base64() {
    use sprag::{Envelope, Kind, QueueName, RedisStore, Store, Unique};
    let sprag = Program::start().await;
    let store = RedisStore::builder(sprag.server.url()).build().expect("valid");
    let queue = QueueName::new("q").expect("queue");
    let job = Envelope::builder(queue.clone(), Kind::new("k").expect("kind"));
    let job = job.unique(Unique::key(b"\xff\xfe")).build().expect("valid");
    store.enqueue(&queue, &[job]).await.expect("enqueued");
    let unique = json!({ "key_base64": "//4=", "any_kind": false, "mode": "lifecycle" });
    assert_eq!(sprag.object(&["job", "list", "q"])["unique"], unique);
}
