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
    a_queue_that_was_lost_from_the_list_is_listed_again,
    a_queue_that_nobody_made_is_not_listed,
    a_deleted_queue_is_not_listed_again,
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

async fn a_queue_that_was_lost_from_the_list_is_listed_again(t: Trial) {
    let (lost, kept, set) = (t.clone(), t.other_queue().await, t.other_queue().await);
    lost.enqueue(lost.job()).await;
    kept.enqueue(kept.job()).await;
    set.limit(5).await;
    lost.lose_from_list().await;
    set.lose_from_list().await;
    let queues = [&lost, &kept, &set].map(|t| t.queue.clone());
    for _ in 0..2 {
        assert_eq!(t.store.register(&queues).await, Ok(()));
        assert!(listed(&lost).await && listed(&kept).await && listed(&set).await);
    }
    assert_eq!(t.store.queues().await.expect("queues").len(), 3);
}

async fn a_queue_that_nobody_made_is_not_listed(t: Trial) {
    let made = t.other_queue().await;
    made.enqueue(made.job()).await;
    t.claim(1).await;
    let queues = [t.queue.clone(), made.queue.clone()];
    assert_eq!(t.store.register(&queues).await, Ok(()));
    assert!(!listed(&t).await && listed(&made).await);
    assert_eq!(t.store.register(&[]).await, Ok(()));
}

async fn a_deleted_queue_is_not_listed_again(t: Trial) {
    t.enqueue(t.job()).await;
    t.delete_queue(true).await.expect("deleted");
    assert_eq!(t.store.register(std::slice::from_ref(&t.queue)).await, Ok(()));
    assert!(!listed(&t).await);
}
