//! Which calls go by the pool, and what the pool does with its connections.

use crate::{
    pair::{Pair, run, until},
    support::{Proxy, Server},
    world::{hasty, ms, note, patient, says, unavailable},
};
use futures_util::future::join_all;
use sprag::{Client, QueueName, RedisStore, State, Store, store::Operation};
use std::{collections::BTreeMap, time::Instant};

fn pooled(url: &str, size: usize, wait: std::time::Duration) -> Client {
    let store = RedisStore::builder(url).pool(size, wait).repeat_budget(ms(0));
    Client::new(store.build().expect("a store"))
}

/// The clients of the library, by number: their last command.
async fn clients(server: &Server) -> BTreeMap<u64, String> {
    let list: String = run(server, &["CLIENT", "LIST"]).await;
    let field = |line: &str, name: &str| {
        let mut words = line.split(' ').filter_map(|word| word.split_once('='));
        words.find(|(field, _)| *field == name).map(|(_, value)| value.to_owned())
    };
    let ours = list.lines().filter(|line| field(line, "lib-name").as_deref() != Some("redis-rs"));
    let of = |line: &str| Some((field(line, "id")?.parse().ok()?, field(line, "cmd")?));
    let all: BTreeMap<_, _> = ours.filter_map(of).collect();
    // This connection of the test's own.
    all.into_iter().filter(|(_, cmd)| cmd != "client|list").collect()
}

fn queue() -> QueueName {
    QueueName::new("default").expect("a queue")
}

#[tokio::test]
async fn long_calls_do_not_go_by_the_shared_connection() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let store = RedisStore::builder(proxy.url()).repeat_budget(ms(0)).build().expect("a store");
    let client = Client::new(store.clone());
    client.enqueue(note(1)).id("a").await.expect("admitted");
    let id = [sprag::JobId::new("a").expect("an id")];
    // Loads the scripts.
    store.list(&queue(), State::Pending, None, None, 5).await.expect("a page");
    drop(store.operate(&queue(), Operation::Cancel, &id).await.expect("operated"));
    // The answer to each is held: on the shared connection it would hold up the enqueue.
    proxy.on("list").hold_reply();
    proxy.on("operate").hold_reply();
    proxy.on("wait").hold_reply();
    let plain = async {
        proxy.wait_struck("list", 1).await;
        proxy.wait_struck("operate", 1).await;
        proxy.wait_struck("wait", 1).await;
        let started = Instant::now();
        client.enqueue(note(2)).await.expect("admitted");
        client.inspector().queue("default").await.expect("a queue");
        let took = started.elapsed();
        proxy.release();
        took
    };
    let queue = queue();
    let (took, page, operated, durable) = tokio::join!(
        plain,
        store.list(&queue, State::Pending, None, None, 5),
        store.operate(&queue, Operation::Cancel, &id),
        client.enqueue(note(3)).replicas(1, ms(100)),
    );
    assert!(took < ms(1_000), "{took:?}");
    page.expect("a page");
    drop(operated.expect("operated"));
    unavailable(durable);
    // One shared, and one for each of the three.
    assert_eq!(proxy.accepted(), 4);
}

#[tokio::test]
async fn there_are_at_most_so_many_connections_and_who_is_too_many_waits() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let client = pooled(&proxy.url(), 2, ms(10_000));
    let list = || async {
        client.inspector().jobs("default", State::Pending).expect("a queue").next_page().await
    };
    client.enqueue(note(1)).await.expect("admitted");
    for page in join_all((0..20).map(|_| list())).await {
        page.expect("a page");
    }
    assert_eq!(proxy.accepted(), 3, "one shared, two of the pool");
    // The URL says the same.
    let url = format!("{}?pool=1", proxy.url());
    let client = hasty(&url);
    let list = || async {
        client.inspector().jobs("default", State::Pending).expect("a queue").next_page().await
    };
    for page in join_all((0..5).map(|_| list())).await {
        page.expect("a page");
    }
    assert_eq!(proxy.accepted(), 5);
}

#[tokio::test]
async fn who_waited_too_long_is_told_the_option() {
    let server = Server::start_tcp().await;
    let client = pooled(&server.url(), 1, ms(200));
    client.enqueue(note(1)).await.expect("admitted");
    let holds = client.clone();
    let holds = tokio::spawn(async move { holds.enqueue(note(2)).replicas(1, ms(2_000)).await });
    until("the server waits for replicas", async || {
        clients(&server).await.values().any(|cmd| cmd == "wait")
    })
    .await;
    let started = Instant::now();
    let jobs =
        client.inspector().jobs("default", State::Pending).expect("a queue").next_page().await;
    says(&unavailable(jobs), &["all 1 connections", "pool="]);
    assert!((ms(200)..ms(1_500)).contains(&started.elapsed()), "{:?}", started.elapsed());
    unavailable(holds.await.expect("no panic"));
    // Free again: nothing was thrown away.
    let jobs =
        client.inspector().jobs("default", State::Pending).expect("a queue").next_page().await;
    jobs.expect("a page");
}

#[tokio::test]
async fn a_connection_whose_answer_was_lost_is_not_used_again() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let client = pooled(&proxy.url(), 1, ms(5_000));
    let list = || async {
        client.inspector().jobs("default", State::Pending).expect("a queue").next_page().await
    };
    client.enqueue(note(1)).await.expect("admitted");
    list().await.expect("a page");
    let before = proxy.accepted();
    proxy.on("list").half_reply();
    unavailable(list().await.map(drop));
    list().await.expect("a page");
    assert_eq!(proxy.accepted(), before + 1);
    // One that is too late (5 s without a budget) is not waited for by the next.
    proxy.on("list").hold_reply();
    says(&unavailable(list().await.map(drop)), &["no answer in time"]);
    list().await.expect("a page");
    assert_eq!(proxy.accepted(), before + 2);
    proxy.release();
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_costs_no_connection() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let client = pooled(&proxy.url(), 1, ms(5_000));
    let list = || async {
        client.inspector().jobs("default", State::Pending).expect("a queue").next_page().await
    };
    client.enqueue(note(1)).await.expect("admitted");
    list().await.expect("a page");
    let before = proxy.accepted();
    for refusal in ["LOADING not yet", "BUSY a script", "MISCONF no disk", "OOM full", "ERR no"] {
        proxy.on("list").answer_error(refusal);
        list().await.map(drop).expect_err(refusal);
        list().await.expect("a page");
    }
    assert_eq!(proxy.accepted(), before);
    // Another server is the one to ask: for all connections.
    proxy.on("list").answer_error("READONLY a replica");
    unavailable(list().await.map(drop));
    list().await.expect("a page");
    assert!(proxy.accepted() > before);
}

#[tokio::test]
async fn a_fresh_connection_is_not_pinged() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let client = patient(&proxy.url(), ms(1_000));
    client.enqueue(note(1)).await.expect("admitted");
    for _ in 0..20 {
        let mut jobs = client.inspector().jobs("default", State::Pending).expect("a queue");
        jobs.next_page().await.expect("a page");
    }
    assert_eq!((proxy.seen("ping"), proxy.accepted()), (0, 2));
}

/// Takes 16 s: so long a connection is trusted.
#[tokio::test]
async fn an_idle_connection_is_pinged_and_stays_whatever_the_answer() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let client = pooled(&proxy.url(), 1, ms(5_000));
    let list = || async {
        client.inspector().jobs("default", State::Pending).expect("a queue").next_page().await
    };
    client.enqueue(note(1)).await.expect("admitted");
    list().await.expect("a page");
    tokio::time::sleep(ms(15_500)).await;
    proxy.on("ping").answer_error("MISCONF the disk is full");
    list().await.expect("a page");
    assert_eq!((proxy.seen("ping"), proxy.struck("ping"), proxy.accepted()), (1, 1, 2));
}

#[tokio::test]
async fn the_wait_for_replicas_is_not_in_the_way_of_other_queues() {
    let pair = Pair::start().await;
    pair.replica.pause();
    let client = patient(&pair.master.url(), ms(1_000));
    let durable: Vec<_> = (0..50)
        .map(|number| {
            let enqueue = client.enqueue(note(number)).replicas(1, ms(1_500));
            tokio::spawn(async move { enqueue.await })
        })
        .collect();
    until("the server waits for replicas", async || {
        clients(&pair.master).await.values().any(|cmd| cmd == "wait")
    })
    .await;
    let started = Instant::now();
    for number in 0..20 {
        client.enqueue(note(number)).await.expect("admitted");
    }
    assert!(started.elapsed() < ms(1_000), "{:?}", started.elapsed());
    pair.replica.resume();
    for answer in durable {
        answer.await.expect("no panic").expect("the replica is back");
    }
}
