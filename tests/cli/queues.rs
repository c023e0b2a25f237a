//! `queue`: listed, paused, deleted.

use crate::program::Program;
use serde_json::json;

#[tokio::test]
async fn queues_are_listed_and_a_server_without_any_is_empty() {
    let sprag = Program::start().await;
    assert_eq!(sprag.objects(&["queue", "list"]).len(), 0);
    assert_eq!(sprag.run(&["queue", "list"]).stderr, "there is no queue\n");
    sprag.object(&["enqueue", "b", "k", "1"]);
    sprag.object(&["enqueue", "a", "k", "1"]);
    let listed = sprag.objects(&["queue", "list"]);
    assert_eq!(listed.iter().map(|q| &q["queue"]).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((&listed[0]["pending"], &listed[0]["unfinished"]), (&json!(1), &json!(1)));
    let table = sprag.run(&["queue", "list"]).stdout;
    assert!(table.lines().count() == 3 && table.contains("paused"), "{table}");
}

#[tokio::test]
async fn a_paused_queue_hands_nothing_out_until_it_is_resumed() {
    let sprag = Program::start().await;
    assert_eq!(sprag.object(&["queue", "pause", "q"]), json!({ "queue": "q", "paused": true }));
    sprag.object(&["enqueue", "q", "k", "1"]);
    assert_eq!(sprag.objects(&["claim", "q", "--worker", "w"]).len(), 0);
    assert_eq!(sprag.object(&["queue", "show", "q"])["paused"], true);
    assert_eq!(sprag.object(&["queue", "resume", "q"]), json!({ "queue": "q", "paused": false }));
    assert_eq!(sprag.claim("q")["payload"], 1);
    assert_eq!(sprag.run(&["queue", "pause", "q"]).stderr, "q: paused\n");
}

#[tokio::test]
async fn stats_tell_of_each_day() {
    let sprag = Program::start().await;
    assert_eq!(sprag.error(3, &["queue", "stats", "q"])["error"], "not_found");
    sprag.object(&["enqueue", "q", "k", "1"]);
    let job = sprag.claim("q");
    let (id, fence) = crate::program::held(&job);
    sprag.object(&["complete", "q", &id, "--fence", &fence]);
    let days = sprag.objects(&["queue", "stats", "q", "--days", "3"]);
    assert_eq!(days.len(), 3);
    let completed: u64 = days.iter().filter_map(|day| day["completed"].as_u64()).sum();
    assert_eq!((completed, &days[0]["queue"]), (1, &json!("q")));
    assert!(days[0]["day"].as_str().is_some_and(|day| day.len() == 10), "{days:?}");
    assert_eq!(sprag.objects(&["queue", "stats", "q"]).len(), 7);
    assert!(sprag.run(&["queue", "stats", "q"]).stdout.contains("completed"));
    for bad in ["0", "91", "-1", "x"] {
        assert_eq!(sprag.error(2, &["queue", "stats", "q", "--days", bad])["error"], "invalid");
    }
}

#[tokio::test]
async fn a_queue_is_deleted_with_care() {
    let sprag = Program::start().await;
    let delete = ["queue", "delete", "q"];
    assert_eq!(sprag.error(3, &delete)["error"], "not_found");
    sprag.object(&["enqueue", "q", "k", "1"]);
    assert_eq!(sprag.error(2, &delete)["error"], "invalid");
    // One job: nobody is asked.
    let deleted = json!({ "queue": "q", "deleted": true });
    assert_eq!(sprag.object(&["queue", "delete", "q", "--force"]), deleted);
    sprag.object(&["enqueue", "q", "k", "1"]);
    sprag.object(&["enqueue", "q", "k", "2"]);
    let refused = sprag.error(2, &["queue", "delete", "q", "--force"]);
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("--yes")), "{refused}");
    assert_eq!(sprag.error(2, &["--yes", "queue", "delete", "q"])["error"], "invalid");
    assert_eq!(sprag.object(&["--yes", "queue", "delete", "q", "--force"]), deleted);
    assert_eq!(sprag.error(3, &["queue", "show", "q"])["error"], "not_found");
}
