//! An enqueue that waits for replicas.

use crate::{
    pair::{Pair, makes},
    world::{existing, hasty, is_there, ms, note, says, unavailable},
};
use sprag::{Envelope, Kind, OrJoin, QueueName, StoreError, Unique, store::Durability};
use std::time::Instant;

fn envelope(id: &str) -> Envelope {
    let queue = QueueName::new("default").expect("a queue");
    let builder = Envelope::builder(queue, Kind::new("note").expect("a kind"));
    builder.id(sprag::JobId::new(id).expect("an id")).build().expect("in bounds")
}

#[tokio::test]
async fn a_replica_that_has_it_is_told_soon() {
    for make in makes() {
        let pair = Pair::of(make).await;
        let client = hasty(&pair.master.url());
        let started = Instant::now();
        let enqueued = client.enqueue(note(1)).id("a").replicas(1, ms(10_000)).await;
        assert!(!existing(enqueued) && started.elapsed() < ms(5_000), "{make:?}");
        let at_replica = hasty(&pair.replica.url());
        assert!(is_there(&at_replica, "a").await, "{make:?}");
        let all = client.durable(Durability::default().replicas(1, ms(10_000))).expect("in bounds");
        all.enqueue_atomic(&[envelope("b"), envelope("c")]).await.expect("both");
        assert!(is_there(&at_replica, "b").await && is_there(&at_replica, "c").await);
    }
}

#[tokio::test]
async fn without_a_replica_it_is_told_so_in_time_and_the_job_is_there() {
    let pair = Pair::start().await;
    pair.part().await;
    let client = hasty(&pair.master.url());
    let within = |wait| client.enqueue(note(1)).id("order-7").replicas(1, wait);
    let enqueue = || within(ms(200));
    let started = Instant::now();
    let text = unavailable(enqueue().await);
    assert!((ms(200)..ms(2_000)).contains(&started.elapsed()), "{:?}", started.elapsed());
    says(&text, &["job order-7 is enqueued, but 0 of 1 replicas", "200ms", "again is safe"]);
    assert!(!text.contains("may have been"), "{text}");
    assert!(is_there(&client, "order-7").await);
    // Again: it waits again.
    let started = Instant::now();
    says(&unavailable(enqueue().await), &["order-7", "0 of 1"]);
    assert!(started.elapsed() >= ms(200));
    pair.join().await;
    assert!(existing(within(ms(10_000)).await));
    // One is not two.
    let text = unavailable(client.enqueue(note(1)).id("order-7").replicas(2, ms(200)).await);
    says(&text, &["order-7", "1 of 2"]);
}

#[tokio::test]
async fn a_replica_that_hangs_has_nothing() {
    for make in makes() {
        let pair = Pair::of(make).await;
        let client = hasty(&pair.master.url());
        pair.replica.pause();
        let enqueue = |client: &sprag::Client| client.enqueue(note(1)).id("a").replicas(1, ms(200));
        says(&unavailable(enqueue(&client).await), &["job a ", "0 of 1"]);
        // Not even for another process: it only finds the job there.
        let other = hasty(&pair.master.url());
        says(&unavailable(enqueue(&other).await), &["job a ", "0 of 1"]);
        // Nor all or nothing.
        let durable = client.durable(Durability::default().replicas(1, ms(200))).expect("bounds");
        let refused = durable.enqueue_atomic(&[envelope("b")]).await.expect_err("not replicated");
        assert_eq!(refused.index, None);
        says(&unavailable(Err::<(), _>(refused.error)), &["0 of 1"]);
        assert!(is_there(&client, "b").await);
        pair.replica.resume();
        assert!(existing(client.enqueue(note(1)).id("a").replicas(1, ms(10_000)).await));
    }
}

/// Who joins another job would rely on that one.
#[tokio::test]
async fn a_job_that_is_joined_is_as_durable_as_is_asked() {
    let pair = Pair::start().await;
    pair.part().await;
    let client = hasty(&pair.master.url());
    client.enqueue(note(1)).id("a").unique_key("k").await.expect("admitted");
    let joining = |within| client.enqueue(note(2)).unique(Unique::key("k")).replicas(1, within);
    let text = unavailable(joining(ms(100)).await.or_join());
    says(&text, &["job a holds the unique key, but 0 of 1 replicas have it", "again is safe"]);
    assert!(!text.contains("may have been"), "{text}");
    pair.join().await;
    let joined = joining(ms(10_000)).await;
    assert!(matches!(joined, Err(StoreError::Duplicate { .. })), "{joined:?}");
}

#[tokio::test]
async fn what_is_refused_is_refused_however_far_the_replica_is() {
    let pair = Pair::start().await;
    pair.part().await;
    let client = hasty(&pair.master.url());
    client.enqueue(note(1)).id("a").unique_key("k").await.expect("admitted");
    let durable = || client.enqueue(note(2)).replicas(1, ms(100));
    let conflict = durable().id("a").await;
    assert!(matches!(conflict, Err(StoreError::IdConflict { .. })), "{conflict:?}");
    client.inspector().limit("default", Some(1)).await.expect("set");
    let full = durable().await;
    assert!(matches!(full, Err(StoreError::Backpressure { .. })), "{full:?}");
}
