//! `docs/wire-format.md` is enough: a peer in Python, written after it alone, and the Rust side work
//! on the same queue, each on the jobs of the other.
//!
//! Skipped, with a line that says so, where there is no Python with `redis` and `msgpack`; compulsory
//! in CI. `scripts/need python-peer` makes one.

#[path = "../support/mod.rs"]
mod support;

use serde_json::{Value, json};
use sprag::{
    Client, Job, JobId, QueueName, State, StoreError, Unique, Worker,
    store::{EndingReason, JobInfo, Pace},
};
use std::{path::Path, process::Command, time::Duration};
use support::{Address, PATIENCE, Server};

const HOUR: Duration = Duration::from_secs(3_600);

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Greeting {
    text: String,
}

impl Job for Greeting {
    const KIND: &'static str = "greeting:send";
    const QUEUE: &'static str = "wire";
}

fn greeting(text: &str) -> Greeting {
    Greeting { text: text.to_owned() }
}

fn queue() -> QueueName {
    QueueName::new("wire").expect("queue")
}

async fn show(client: &Client, id: &str) -> JobInfo {
    let id = JobId::new(id).expect("id");
    client.store().show(&queue(), &id).await.expect("the job is there")
}

/// An interpreter that has what the peer needs.
fn python() -> Option<String> {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python-peer/bin/python");
    let named = std::env::var("SPRAG_PYTHON").ok();
    let mut known = named.into_iter().chain([made.display().to_string(), "python3".to_owned()]);
    let is_peer = |python: &String| {
        let run = Command::new(python).args(["-c", "import redis, msgpack"]).output();
        run.is_ok_and(|run| run.status.success())
    };
    let found = known.find(is_peer);
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(found.is_some() || !in_ci, "CI needs the peer: scripts/need python-peer");
    if found.is_none() {
        eprintln!("!!! SKIPPED: no Python with redis and msgpack; run scripts/need python-peer");
    }
    found
}

/// Runs one of the peer's parts; what it says of it.
async fn peer(python: &str, server: &Server, part: &str) -> Value {
    let Address::Unix(socket) = server.address() else { panic!("the server has a socket") };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut run = tokio::process::Command::new(python);
    run.arg(root.join("tests/wire/peer.py")).arg(root.join("lua")).arg(socket).arg(part);
    let run = tokio::time::timeout(PATIENCE, run.kill_on_drop(true).output());
    let run = run.await.expect("in time").expect("Python runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).expect("an object")
}

#[tokio::test]
async fn rust_runs_what_python_enqueued() {
    let Some(python) = python() else { return };
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");

    let said = peer(&python, &server, "produce").await;
    let admitted = json!(["PENDING", "SCHEDULED", "PENDING", "PENDING"]);
    assert_eq!((&said["first"], &said["repeat"]), (&admitted, &admitted));
    let existing =
        json!(["EXISTING PENDING", "EXISTING SCHEDULED", "EXISTING PENDING", "EXISTING PENDING"]);
    assert_eq!(said["again"], existing);
    assert_eq!(said["conflict"], json!(["CONFLICT"]));
    assert_eq!(said["duplicate"], json!(["DUPLICATE keyed 0"]));
    assert_eq!(said["usual"], json!(["PENDING", "PENDING", "PENDING"]));
    assert_eq!(said["atomic"], "0 REFUSED 1\n1 CONFLICT");
    assert_eq!(client.store().queues().await.expect("queues"), [queue()], "it is registered");

    // Rust writes the same content and the same key in the same way.
    let again = client.enqueue(greeting("plain")).id("plain").await.expect("existing");
    assert!(again.existing, "{again:?}");
    let key = Unique::key(b"\xffuser 42");
    let refused = client.enqueue(greeting("third")).unique(key).await.expect_err("held");
    let existing_id = "keyed".to_owned();
    assert_eq!(refused, StoreError::Duplicate { existing_id, replaced: false });
    let plain = show(&client, "plain").await.envelope.expect("decodes").0;
    assert_eq!(plain.headers().get("trace").map(String::as_str), Some("a b=c"));

    let (run, mut texts) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::builder(&client).concurrency(1).handler(move |job: Greeting| {
        let run = run.clone();
        async move { run.send(job.text) }
    });
    let worker = worker.build().expect("worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run_until_shutdown());
    let mut order = Vec::new();
    for _ in 0..7 {
        let text = tokio::time::timeout(PATIENCE, texts.recv()).await.expect("in time");
        order.push(text.expect("the worker lives"));
    }
    shutdown.drain();
    assert_eq!(worker.await.expect("no panic").completed, 7);
    assert_eq!(order[0], "high", "the higher lane first");
    order.retain(|text| text != "later");
    assert_eq!(order, ["high", "plain", "keyed", "usual 0", "usual 1", "usual 2"]);
}

#[tokio::test]
async fn python_works_on_what_rust_enqueued() {
    let Some(python) = python() else { return };
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let job = |id: &str| client.enqueue(greeting(&format!("{id}: ü"))).id(id);
    job("done").retention(HOUR).header("trace", "a b=c").await.expect("admitted");
    job("failed").await.expect("admitted");
    job("last").max_attempts(1).await.expect("admitted");
    job("later").await.expect("admitted");
    job("back").unique_key("~ key").await.expect("admitted");
    job("given-up").await.expect("admitted");
    job("due").priority(9).delay(Duration::from_millis(50)).await.expect("admitted");

    let said = peer(&python, &server, "work").await;
    assert_eq!(said["woken"], true);
    assert_eq!(said["more"], 0);
    assert_eq!(said["same"], true, "the repeat of a claim hands over the same jobs");
    let jobs = said["jobs"].as_array().expect("jobs");
    let ids: Vec<_> = jobs.iter().map(|job| job["id"].as_str().expect("id")).collect();
    assert_eq!(ids, ["due", "done", "failed", "last", "later", "back", "given-up"]);
    for job in jobs {
        assert_eq!(job["text"], format!("{}: ü", job["id"].as_str().expect("id")));
        assert_eq!((&job["kind"], &job["fits"]), (&json!("greeting:send"), &json!(true)), "{job}");
        assert_eq!((&job["attempt"], &job["crash"]), (&json!(0), &json!(0)), "{job}");
    }
    assert_eq!((&jobs[0]["priority"], &jobs[1]["header"]), (&json!("9"), &json!("a%20b%3Dc")));
    assert_eq!(said["extended"], json!(["OK", "OK", "OK", "OK", "OK", "OK", "OK", "STALE"]));
    assert_eq!((&said["complete"], &said["complete_repeated"]), (&json!("OK"), &json!("OK")));
    assert_eq!(said["complete_stale"], "STALE");
    assert_eq!((&said["retry"], &said["exhausted"]), (&json!("RETRY"), &json!("ARCHIVED")));
    for verb in ["snooze", "requeue", "archive"] {
        assert_eq!(said[verb], "OK", "{verb}");
    }

    let done = show(&client, "done").await;
    assert_eq!(
        (done.state, done.result.as_deref()),
        (State::Completed, Some(&b"{\"sent\":true}"[..]))
    );
    let failed = show(&client, "failed").await;
    assert_eq!((failed.state, failed.attempt), (State::Retry, 1));
    assert_eq!(failed.errors[0].error.as_deref(), Some("no \"route\"\nto host"));
    let last = show(&client, "last").await;
    assert_eq!(last.ending.expect("ended").reason, EndingReason::Exhausted);
    assert_eq!(show(&client, "later").await.state, State::Scheduled);
    assert_eq!(show(&client, "back").await.state, State::Pending);
    let given_up = show(&client, "given-up").await;
    assert_eq!(given_up.ending.expect("ended").reason, EndingReason::Discarded);
    let due = show(&client, "due").await;
    assert_eq!(due.holder.expect("held").worker.as_str(), "peer:1");
    client.store().sweep(&queue(), Pace::Now).await.expect("sweep");
    let counters = client.store().queue(&queue()).await.expect("counters");
    assert_eq!(counters.unfinished, 4, "{counters:?}");
}
