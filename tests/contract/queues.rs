//! Which queues there are.

use crate::trial::*;
use sprag::StoreError;

cases! {
    an_absent_queue_is_not_found,
    an_enqueue_makes_the_queue,
    a_limit_makes_the_queue,
    looking_makes_no_queue,
    a_queue_outlives_its_jobs,
    queues_are_sorted,
}

async fn listed(t: &Trial) -> bool {
    t.store.queues().await.expect("queues").contains(&t.queue)
}

async fn an_absent_queue_is_not_found(t: Trial) {
    let error = StoreError::NotFound(format!("queue {}", t.queue));
    assert_eq!(t.store.queue(&t.queue).await, Err(error));
    assert_eq!(t.find(&id("a")).await, Err(no_job(&id("a"))));
}

async fn an_enqueue_makes_the_queue(t: Trial) {
    assert!(!listed(&t).await);
    t.enqueue(t.job()).await;
    assert!(listed(&t).await);
    let other = t.other_queue().await;
    other.store.enqueue_atomic(&other.queue, &other.jobs(1)).await.expect("admitted");
    assert!(listed(&other).await);
}

async fn a_limit_makes_the_queue(t: Trial) {
    t.limit(5).await;
    assert!(listed(&t).await);
    let info = t.info().await;
    assert_eq!((info.unfinished, info.limit), (0, Some(5)));
}

async fn looking_makes_no_queue(t: Trial) {
    t.claim(1).await;
    t.sweep().await;
    assert!(t.find(&id("a")).await.is_err());
    assert!(t.store.queue(&t.queue).await.is_err());
    assert!(!listed(&t).await);
}

async fn a_queue_outlives_its_jobs(t: Trial) {
    t.enqueue(t.job()).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert!(listed(&t).await);
    assert_eq!(t.info().await.unfinished, 0);
}

async fn queues_are_sorted(t: Trial) {
    for _ in 0..12 {
        let t = t.other_queue().await;
        t.enqueue(t.job()).await;
    }
    let queues = t.store.queues().await.expect("queues");
    assert!(queues.len() >= 12 && queues.is_sorted(), "{queues:?}");
}
