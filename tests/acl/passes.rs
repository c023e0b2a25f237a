//! What a role does besides its scripts, with its rules alone and without a refusal. Every script in
//! all its variants: `faults::roles`.

use crate::{
    program::{command, run},
    user::{LEASE, Task, World, job, queue, rules, worker},
};
use sprag::{
    Client, Store, Worker,
    store::{Channel, Complete, Held, Role, WorkerInfo, WorkerState},
};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_producer_enqueues_and_waits_for_the_end() {
    let world = World::new().await;
    let store = world.as_roles(&[Role::Producer]).await;
    let client = Client::new(store);
    let admitted = client.enqueue(Task(1)).retention(SOON).await.expect("enqueue");
    let wait = client.wait::<u32>(&queue(), &admitted.id).timeout(SOON);
    let wait = tokio::spawn(wait.into_future());
    let others = Client::connect(&world.server.url()).expect("client");
    let (id, store) = (admitted.id.clone(), others.store());
    // From when on the end is published.
    while !world.run::<bool>(&["HEXISTS", "sprag:{q}:meta", "watched"]).await {
        tokio::task::yield_now().await;
    }
    let claim = store.claim(&queue(), &worker(), 1, LEASE).await.expect("claim");
    let held = Held { id, fence: claim.jobs[0].fence };
    let done = Complete { held, result: Some("7".into()) };
    store.complete(&queue(), &[done]).await.expect("complete");
    assert_eq!(wait.await.expect("no panic"), Ok(7));
    assert_eq!(world.refusals().await, []);
}

async fn succeed(_: Task) -> Result<(), std::io::Error> {
    Ok(())
}

#[tokio::test]
async fn a_worker_works_beats_and_listens() {
    let world = World::new().await;
    let client = Client::new(world.as_roles(&[Role::Worker]).await);
    let others = Client::connect(&world.server.url()).expect("client");
    for i in 0..20 {
        others.enqueue(Task(i)).await.expect("enqueue");
    }
    let mut worker = Worker::builder(&client).handler(succeed).build().expect("worker");
    let report = worker.run_until_empty().await.expect("it may");
    assert_eq!(report.completed, 20);
    client.store().beat(&info()).await.expect("beat");
    client.store().retire(&crate::user::worker()).await.expect("retire");
    let events = client.store().listen(Channel::Control).await.expect("listens");
    drop(events);
    let waited = client.store().wait(&[queue()], Duration::from_millis(20)).await;
    assert!(waited.is_ok(), "{waited:?}");
    client.store().wake(&queue()).await.expect("wake");
    assert!(!client.store().queues().await.expect("queues").is_empty());
    client.store().register(&[queue()]).await.expect("register");
    // Off the list, it is put back.
    world.run::<u64>(&["SREM", "sprag:queues", "q"]).await;
    client.store().register(&[queue()]).await.expect("register");
    assert_eq!(world.refusals().await, []);
}

#[tokio::test]
async fn an_operator_looks_and_steers_by_the_command() {
    let world = World::new().await;
    world.user("u", &rules(Role::Operator)).await;
    let others = Client::connect(&world.server.url()).expect("client");
    let store = others.store();
    for id in ["a", "b", "c", "d"] {
        others.enqueue(Task(1)).id(id).await.expect("enqueue");
    }
    let worker = sprag::WorkerId::new("w").expect("worker");
    store.beat(&info()).await.expect("beat");
    let url = world.url("u");
    for line in [
        "queue list",
        "queue show q",
        "queue stats q",
        "queue pause q",
        "queue resume q",
        "queue limit q 100",
        "queue limit made-by-limit 1",
        "job list q",
        "job show q a",
        "job cancel q a",
        "job rerun q a",
        "job run q a",
        "job archive q b",
        "job delete q b",
        "job cancel q --state pending --all",
        "quarantine list",
        "quarantine add q 00112233445566778899aabbccddeeff",
        "quarantine list q",
        "quarantine release q 00112233445566778899aabbccddeeff",
        "worker list",
        "worker quiet w",
        "worker stop w",
        "doctor",
        "doctor --repair",
        "queue delete q --force",
    ] {
        let mut command = command();
        let ran = run(command.args(["--url", &url, "--yes"]).args(line.split(' ')));
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        assert_eq!(world.refusals().await, [], "{line}");
    }
    store.retire(&worker).await.expect("retire");
}

#[tokio::test]
async fn an_operator_waits_for_a_job() {
    let world = World::new().await;
    world.user("u", &rules(Role::Operator)).await;
    let others = Client::connect(&world.server.url()).expect("client");
    others.enqueue(Task(1)).id("a").retention(SOON).await.expect("enqueue");
    let claim = others.store().claim(&queue(), &worker(), 1, LEASE).await.expect("claim");
    let held = Held { id: claim.jobs[0].id.clone(), fence: claim.jobs[0].fence };
    let done = Complete { held, result: None };
    others.store().complete(&queue(), &[done]).await.expect("complete");
    let ran = run(command().args(["--url", &world.url("u"), "job", "wait", "q", "a"]));
    assert_eq!((ran.code, world.refusals().await), (0, vec![]), "{ran:?}");
}

#[tokio::test]
async fn a_worker_may_enqueue_what_its_handlers_enqueue() {
    let world = World::new().await;
    let store = world.as_roles(&[Role::Worker]).await;
    let outcomes = store.enqueue(&queue(), &[job()]).await.expect("enqueue");
    assert!(outcomes[0].is_ok() && world.refusals().await.is_empty());
}

fn info() -> WorkerInfo {
    let text = serde_json::json!({
        "id": "w", "queues": ["q"], "host": "h", "pid": 1, "version": "0", "concurrency": 1,
        "busy": 0, "state": WorkerState::Running, "started_at": 0, "seen_at": 0
    });
    serde_json::from_value(text).expect("a worker")
}
