//! `quarantine`.

use crate::program::{Program, text};
use serde_json::json;

#[tokio::test]
async fn a_fingerprint_is_closed_looked_at_and_opened() {
    let sprag = Program::start().await;
    assert_eq!(sprag.objects(&["quarantine", "list"]).len(), 0);
    let made = sprag.object(&["enqueue", "q", "k", "1", "--id", "x"]);
    assert_eq!(made["state"], "pending");
    let print = text(&sprag.object(&["job", "show", "q", "x"]), "fingerprint");
    let add = ["quarantine", "add", "q", &print, "--reason", "it kills"];
    for changed in [true, false] {
        let expected = json!({ "queue": "q", "fingerprint": print, "changed": changed });
        assert_eq!(sprag.object(&add), expected);
    }
    let refused = sprag.error(6, &["enqueue", "q", "k", "1"]);
    assert_eq!(
        (&refused["error"], &refused["fingerprint"]),
        (&json!("quarantined"), &json!(print))
    );
    assert_eq!(sprag.objects(&["claim", "q", "--worker", "w"]).len(), 0);
    assert_eq!(sprag.object(&["job", "show", "q", "x"])["state"], "quarantined");

    let shown = sprag.object(&["quarantine", "show", "q", &print]);
    assert_eq!((&shown["reason"], &shown["crashes"]), (&json!("it kills"), &json!(0)));
    assert!(shown["quarantined_at"].is_u64(), "{shown}");
    assert_eq!(sprag.object(&["quarantine", "list", "q"]), shown);
    assert_eq!(sprag.object(&["quarantine", "list"]), shown);
    let table = sprag.run(&["quarantine", "list"]).stdout;
    assert!(table.contains(&print) && table.contains("it kills"), "{table}");
    assert!(sprag.run(&["quarantine", "show", "q", &print]).stdout.contains("it kills"));

    let opened = json!({ "queue": "q", "fingerprint": print, "released": 1, "archived": 0 });
    let release = ["quarantine", "release", "q", &print];
    assert_eq!(sprag.object(&release), opened);
    assert_eq!(sprag.error(3, &release)["error"], "not_found");
    assert_eq!(sprag.error(3, &["quarantine", "show", "q", &print])["error"], "not_found");
    assert_eq!(sprag.claim("q")["id"], "x");
    for verb in ["show", "add", "release"] {
        assert_eq!(sprag.error(2, &["quarantine", verb, "q", "ABC"])["error"], "invalid");
    }
}

#[tokio::test]
async fn a_job_that_kills_its_workers_is_found_with_the_last_of_them() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1", "--id", "x"]);
    let mut connection = sprag.server.connection().await;
    // One crash is enough here.
    let set: Result<(), _> = redis::cmd("HSET")
        .arg(&["sprag:{q}:meta", "crash_limit", "1"])
        .query_async(&mut connection)
        .await;
    set.expect("set");
    sprag.object(&["claim", "q", "--worker", "killed-one", "--lease", "100ms"]);
    std::thread::sleep(std::time::Duration::from_millis(150));
    assert_eq!(sprag.object(&["sweep", "q"])["quarantined"], 1);
    let shown = sprag.object(&["quarantine", "list", "q"]);
    assert_eq!((&shown["crashes"], &shown["sample_id"]), (&json!(1), &json!("x")));
    assert_eq!(shown["worker"], "killed-one");
    assert_eq!(shown["reason"], "1 crash within 24h; last worker killed-one");
}
