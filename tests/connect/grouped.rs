//! Durable enqueues at the same time share calls, and the wait.

use crate::{
    pair::Pair,
    support::Proxy,
    world::{ms, note, patient},
};
use futures_util::future::join_all;
use std::time::Instant;

#[tokio::test]
async fn many_durable_enqueues_share_calls() {
    let pair = Pair::start().await;
    let proxy = Proxy::in_front_of(&pair.master).await;
    let client = patient(&proxy.url(), ms(3_000));
    client.enqueue(note(0)).replicas(1, ms(10_000)).await.expect("a replica");
    let before = (proxy.seen("enqueue"), proxy.seen("wait"));
    let enqueue = async |number| client.enqueue(note(number)).replicas(1, ms(10_000)).await;
    for answer in join_all((0..1_000).map(enqueue)).await {
        answer.expect("a replica");
    }
    let (calls, waits) = (proxy.seen("enqueue") - before.0, proxy.seen("wait") - before.1);
    assert!(calls <= 50 && calls == waits, "{calls} {waits}");
}

#[tokio::test]
async fn another_durability_is_another_call() {
    let pair = Pair::start().await;
    let proxy = Proxy::in_front_of(&pair.master).await;
    let client = patient(&proxy.url(), ms(0));
    client.enqueue(note(0)).replicas(1, ms(10_000)).await.expect("a replica");
    // Nobody waits for two replicas but who asked for them.
    let (two, one, none) = tokio::join!(
        client.enqueue(note(1)).replicas(2, ms(1_500)),
        async {
            let started = Instant::now();
            client.enqueue(note(2)).replicas(1, ms(1_500)).await.map(|_| started.elapsed())
        },
        async {
            let started = Instant::now();
            client.enqueue(note(3)).await.map(|_| started.elapsed())
        },
    );
    crate::world::says(&crate::world::unavailable(two), &["1 of 2"]);
    assert!(one.expect("a replica") < ms(1_400));
    assert!(none.expect("admitted") < ms(1_000));
}
