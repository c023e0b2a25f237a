//! A future that is dropped in the middle of a call.

use crate::{
    pair::{Pair, run, until},
    support::{Proxy, Server},
    world::{is_there, ms, note},
};
use sprag::{Client, QueueName, RedisStore, State, store::Durability};
use std::time::Instant;
use tokio::time::timeout;

fn one_connection(url: &str) -> Client {
    let store = RedisStore::builder(url).pool(1, ms(5_000)).repeat_budget(ms(0));
    Client::new(store.build().expect("a store"))
}

#[tokio::test]
async fn the_next_caller_does_not_wait_behind_a_dropped_call() {
    let pair = Pair::start().await;
    pair.replica.pause();
    let client = one_connection(&pair.master.url());
    let durable = client.durable(Durability::default().replicas(1, ms(20_000))).expect("bounds");
    let queue = QueueName::new("default").expect("a queue");
    let envelope = client.enqueue(note(1)).id("a").envelope().expect("in bounds");
    // The store's own call: the client's would go on as a task of its own.
    let store = durable.store().clone();
    let call = tokio::spawn(async move { store.enqueue(&queue, &[envelope]).await.map(drop) });
    until("the server waits for the replica", async || {
        let list: String = run(&pair.master, &["CLIENT", "LIST"]).await;
        list.contains("cmd=wait")
    })
    .await;
    call.abort();
    call.await.expect_err("dropped");
    assert!(is_there(&client, "a").await, "it was sent");
    let started = Instant::now();
    let mut jobs = client.inspector().jobs("default", State::Pending).expect("a queue");
    assert_eq!(jobs.next_page().await.expect("a page").expect("a job").len(), 1);
    assert!(started.elapsed() < ms(2_000), "{:?}", started.elapsed());
}

#[tokio::test]
async fn the_next_caller_gets_its_own_answer() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let client = one_connection(&proxy.url());
    let inspector = client.inspector();
    let list = |state| inspector.jobs("default", state).expect("a queue");
    client.enqueue(note(1)).await.expect("admitted");
    list(State::Pending).next_page().await.expect("a page");
    for _ in 0..3 {
        proxy.on("list").delay_reply(ms(2_000));
        let mut pending = list(State::Pending);
        timeout(ms(100), pending.next_page()).await.map(drop).expect_err("too early");
        let started = Instant::now();
        let archived = list(State::Archived).next_page().await.expect("a page");
        assert!(archived.is_none_or(|jobs| jobs.is_empty()));
        assert!(started.elapsed() < ms(1_500), "{:?}", started.elapsed());
    }
    // Those that were given up are closed, not collected.
    until("they are gone", async || {
        let list: String = run(&server, &["CLIENT", "LIST"]).await;
        list.lines().filter(|line| line.contains("cmd=evalsha")).count() <= 2
    })
    .await;
}
