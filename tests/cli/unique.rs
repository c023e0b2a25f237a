//! `enqueue` with unique keys of each mode, deadlines and remembered ids.

use crate::program::{Program, held, text};
use serde_json::json;

#[tokio::test]
async fn a_throttle_holds_its_key_whatever_becomes_of_the_job() {
    let sprag = Program::start().await;
    let enqueue = ["enqueue", "q", "k", "1", "--unique", "u", "--throttle", "1h"];
    let id = text(&sprag.object(&enqueue), "id");
    let (_, fence) = held(&sprag.claim("q"));
    sprag.object(&["complete", "q", &id, "--fence", &fence]);
    let refused = sprag.error(4, &enqueue);
    assert_eq!((&refused["existing_id"], &refused["replaced"]), (&json!(id), &json!(false)));
    let joined = sprag.object(&[&enqueue[..], &["--join"]].concat());
    assert_eq!((&joined["id"], &joined["state"]), (&json!(id), &json!(null)));
}

#[tokio::test]
async fn debounced_events_are_one_job_with_the_last_payload() {
    let sprag = Program::start().await;
    let flags = ["--unique", "u", "--debounce", "300ms", "--max-wait", "1m"];
    let event = |payload: &'static str| [&["enqueue", "q", "k", payload], &flags[..]].concat();
    let first = sprag.object(&event("1"));
    assert_eq!(first["state"], "scheduled");
    let second = sprag.error(4, &event("2"));
    assert_eq!((&second["existing_id"], &second["replaced"]), (&first["id"], &json!(true)));
    let joined = sprag.object(&[&event("3")[..], &["--join"]].concat());
    assert_eq!(joined["id"], first["id"]);
    std::thread::sleep(std::time::Duration::from_millis(350));
    assert_eq!(sprag.object(&["sweep", "q"])["promoted"], 1);
    let job = sprag.claim("q");
    assert_eq!((&job["id"], &job["payload"]), (&first["id"], &json!(3)));
}

#[tokio::test]
async fn a_duplicate_replaces_what_it_is_to() {
    let sprag = Program::start().await;
    let unique = ["--unique", "u", "--replace", "payload,run_at,priority,max_attempts"];
    let id = text(&sprag.object(&["enqueue", "q", "k", "1", "--unique", "u"]), "id");
    let mut args = vec!["enqueue", "q", "k", "2", "--priority", "9", "--max-attempts", "2"];
    args.extend(["--delay", "1h"]);
    args.extend(unique);
    assert_eq!(sprag.error(4, &args)["replaced"], true);
    let job = sprag.object(&["job", "show", "q", &id, "--payload"]);
    assert_eq!((&job["state"], &job["payload"]), (&json!("scheduled"), &json!(2)));
    assert_eq!((&job["priority"], &job["max_attempts"]), (&json!(9), &json!(2)));
}

#[tokio::test]
async fn a_key_is_of_its_kind_unless_it_is_of_any_and_may_be_the_payload() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "a", "1", "--unique", "u"]);
    sprag.object(&["enqueue", "q", "b", "1", "--unique", "u"]);
    sprag.object(&["enqueue", "q", "a", "1", "--unique", "v", "--any-kind"]);
    sprag.error(4, &["enqueue", "q", "b", "1", "--unique", "v", "--any-kind"]);
    sprag.object(&["enqueue", "q", "c", "1", "--unique-payload"]);
    sprag.error(4, &["enqueue", "q", "c", "1", "--unique-payload"]);
    sprag.object(&["enqueue", "q", "c", "2", "--unique-payload"]);
}

#[tokio::test]
async fn a_job_past_its_deadline_does_not_run() {
    let sprag = Program::start().await;
    let past = sprag.error(2, &["enqueue", "q", "k", "1", "--deadline", "2000-01-01T00:00:00Z"]);
    assert_eq!(past["error"], "invalid");
    sprag.object(&["enqueue", "q", "k", "1", "--deadline", "2100-01-01T00:00:00Z", "--id", "a"]);
    sprag.object(&["enqueue", "q", "k", "2", "--deadline", "50ms", "--id", "b"]);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(sprag.claim("q")["id"], "a");
    sprag.objects(&["claim", "q", "--worker", "w"]);
    let late = sprag.object(&["job", "show", "q", "b"]);
    assert_eq!((&late["state"], &late["reason"]), (&json!("archived"), &json!("expired")));
}

#[tokio::test]
async fn an_id_is_remembered_after_its_job() {
    let sprag = Program::start().await;
    let enqueue = ["enqueue", "q", "k", "1", "--id", "x", "--remember", "1h"];
    sprag.object(&enqueue);
    let (id, fence) = held(&sprag.claim("q"));
    sprag.object(&["complete", "q", &id, "--fence", &fence]);
    let again = sprag.object(&enqueue);
    assert_eq!((&again["existing"], &again["state"]), (&json!(true), &json!(null)));
    sprag.error(5, &["enqueue", "q", "k", "2", "--id", "x"]);
}
