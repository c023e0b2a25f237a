//! Connections: storms that do not come, and calls that outlive what happens to a server.

use crate::support::{Proxy, Server};
use futures_util::future::join_all;
use redis::cmd;
use sprag::{
    Client, Codec, Context, Envelope, Job, Kind, QueueName, RedisStore, Store, Worker,
    store::{Pace, QueueInfo},
};
use std::time::{Duration, Instant};

fn queue() -> QueueName {
    QueueName::new("default").expect("queue")
}

fn store(url: &str) -> RedisStore {
    RedisStore::builder(url).build().expect("store")
}

fn job() -> Envelope {
    let kind = Kind::new("k").expect("kind");
    Envelope::builder(queue(), kind).payload("x", Codec::Raw).build().expect("job")
}

async fn info(store: &RedisStore) -> QueueInfo {
    store.queue(&queue()).await.expect("queue")
}

/// Enqueues of `n` jobs, all at once; each is admitted.
async fn enqueue_at_once(store: &RedisStore, n: usize) {
    let calls = (0..n).map(|_| async { store.enqueue(&queue(), &[job()]).await });
    for outcomes in join_all(calls).await {
        let admitted = outcomes.expect("enqueue").remove(0).expect("admitted");
        assert!(!admitted.existing);
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Nothing;

impl Job for Nothing {
    const KIND: &'static str = "k";
}

fn idle_worker(store: &RedisStore) -> Worker {
    let handler = |_: Nothing, _: Context| async { Ok::<_, std::io::Error>(()) };
    Worker::builder(&Client::new(store.clone())).handler(handler).build().expect("worker")
}

/// While the server is away for 10 s: connections are accepted and closed at once.
#[tokio::test]
async fn a_server_that_is_away_is_tried_at_most_twenty_times_in_ten_seconds() {
    let mut server = Server::start().await;
    let proxy = Proxy::in_front_of(&server).await;
    let store = store(&proxy.url());
    let worker = idle_worker(&store);
    let shutdown = worker.shutdown();
    let working = tokio::spawn(worker.run_until_shutdown());
    proxy.wait_seen("blpop", 1).await;

    server.kill();
    let before = proxy.accepted();
    let calls = tokio::spawn({
        let store = store.clone();
        async move { enqueue_at_once(&store, 50).await }
    });
    // The time that the fact is about.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let tries = proxy.accepted() - before;
    assert!((4..=20).contains(&tries), "{tries} tries");

    server.restart().await;
    let back = Instant::now();
    calls.await.expect("all calls are answered");
    assert!(back.elapsed() < Duration::from_secs(3), "{:?}", back.elapsed());
    shutdown.drain();
    working.await.expect("the worker ends");
}

/// The same, when connections are refused.
#[tokio::test]
async fn a_server_that_refuses_and_comes_back_is_found_within_the_back_off_and_a_second() {
    let server = Server::start().await;
    let proxy = Proxy::in_front_of(&server).await;
    let store = store(&proxy.url());
    enqueue_at_once(&store, 1).await;
    proxy.refuse(true).await;
    proxy.cut_all();
    let calls = tokio::spawn({
        let store = store.clone();
        async move { enqueue_at_once(&store, 50).await }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!calls.is_finished(), "they are repeated meanwhile");
    proxy.refuse(false).await;
    let back = Instant::now();
    calls.await.expect("all calls are answered");
    // The longest back-off, the longest pause between repeats, and a second for the calls.
    assert!(back.elapsed() < Duration::from_millis(3_500), "{:?}", back.elapsed());
    assert_eq!(info(&store).await.pending, 51);
}

/// Runs `in_between` when 100 of 200 concurrent enqueues are under way.
async fn in_the_middle_of_enqueues(in_between: &[redis::Cmd]) {
    let server = Server::start().await;
    let proxy = Proxy::in_front_of(&server).await;
    let store = store(&proxy.url());
    enqueue_at_once(&store, 1).await;
    proxy.on("enqueue").after(100).hold_request();
    let calls = tokio::spawn({
        let store = store.clone();
        async move { enqueue_at_once(&store, 200).await }
    });
    proxy.wait_struck("enqueue", 1).await;
    let mut redis = server.connection().await;
    for cmd in in_between {
        cmd.query_async::<redis::Value>(&mut redis).await.expect("a command");
    }
    proxy.release();
    calls.await.expect("all are admitted");
    assert_eq!(info(&store).await.pending, 201);
}

#[tokio::test]
async fn killed_connections_cost_no_call_and_double_none() {
    let kill = cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").to_owned();
    in_the_middle_of_enqueues(&[kill]).await;
}

#[tokio::test]
async fn flushed_scripts_cost_no_call_and_double_none() {
    in_the_middle_of_enqueues(&[cmd("SCRIPT").arg("FLUSH").to_owned()]).await;
}

#[tokio::test]
async fn both_at_once_cost_no_call_and_double_none() {
    let kill = cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").to_owned();
    in_the_middle_of_enqueues(&[cmd("SCRIPT").arg("FLUSH").to_owned(), kill]).await;
}

#[tokio::test]
async fn a_server_that_is_stopped_for_a_second_answers_every_call() {
    let server = Server::start().await;
    let store = store(&server.url());
    enqueue_at_once(&store, 1).await;
    server.pause();
    let calls = tokio::spawn({
        let store = store.clone();
        async move { enqueue_at_once(&store, 50).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!calls.is_finished());
    server.resume();
    calls.await.expect("all calls are answered");
    assert_eq!(info(&store).await.pending, 51);
}

#[tokio::test]
async fn a_server_that_comes_back_empty_is_used_again() {
    let mut server = Server::start().await;
    let store = store(&server.url());
    enqueue_at_once(&store, 3).await;
    server.restart().await;
    enqueue_at_once(&store, 2).await;
    assert_eq!(info(&store).await.pending, 2);
    assert_eq!(store.queues().await.expect("queues"), [queue()]);
    store.sweep(&queue(), Pace::Now).await.expect("sweep");
}

/// Each has a connection of its own; the first try to make one does not keep the others out.
#[tokio::test]
async fn many_may_begin_to_wait_at_once() {
    let server = Server::start().await;
    let store = store(&server.url());
    let (queues, block) = ([queue()], Duration::from_millis(50));
    let waits = (0..20).map(|_| store.wait(&queues, block));
    for woken in join_all(waits).await {
        assert_eq!(woken.expect("wait"), None);
    }
}
