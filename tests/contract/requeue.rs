//! A worker that stops gives its jobs back to the front.

use crate::trial::*;
use sprag::{State, store::Held};

cases! {
    a_requeued_job_is_pending_at_the_front,
    a_requeue_counts_nothing,
    a_requeue_keeps_attempts_crashes_and_failures,
    the_first_of_the_slice_is_the_first_in_its_lane,
    each_lane_keeps_the_order_of_the_slice,
    a_later_requeue_goes_before_an_earlier_one,
    a_rejected_one_leaves_the_order_of_the_others,
}

async fn claimed(t: &Trial, names: &[&str]) -> Vec<Held> {
    t.enqueue_named(names).await;
    t.claim(names.len()).await.iter().map(held).collect()
}

async fn give_back(t: &Trial, held: &[Held]) {
    let outcomes = t.store.requeue(&t.queue, held).await.expect("requeue");
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

async fn a_requeued_job_is_pending_at_the_front(t: Trial) {
    let jobs = claimed(&t, &["a"]).await;
    t.enqueue_named(&["b"]).await;
    give_back(&t, &jobs).await;
    let (info, counters) = (t.show(&id("a")).await, t.info().await);
    assert_eq!((info.state, info.holder), (State::Pending, None));
    assert_eq!((counters.pending, counters.active, counters.unfinished), (2, 0, 2));
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn a_requeue_counts_nothing(t: Trial) {
    let jobs = claimed(&t, &["a"]).await;
    give_back(&t, &jobs).await;
    assert_eq!(t.vanish().await.reclaimed, 0, "its lease is gone");
    let job = t.claim(1).await.remove(0);
    assert_eq!((job.attempt, job.crash), (0, 0));
    assert_eq!(t.show(&id("a")).await.errors, []);
}

async fn a_requeue_keeps_attempts_crashes_and_failures(t: Trial) {
    t.enqueue(t.job()).await;
    t.claim_one().await;
    t.vanish().await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.requeue(&t.claim_one().await).await.expect("requeued");
    let job = t.claim(1).await.remove(0);
    assert_eq!((job.attempt, job.crash), (1, 1));
    assert_eq!(t.show(&job.id).await.errors.len(), 2);
}

async fn the_first_of_the_slice_is_the_first_in_its_lane(t: Trial) {
    let jobs = claimed(&t, &["a", "b", "c"]).await;
    t.enqueue_named(&["d"]).await;
    give_back(&t, &jobs).await;
    assert_eq!(t.claim_ids().await, ["a", "b", "c", "d"]);
}

async fn each_lane_keeps_the_order_of_the_slice(t: Trial) {
    for (name, priority) in [("low1", 1), ("high1", 8), ("low2", 1), ("high2", 8)] {
        t.enqueue(t.named(name).priority(priority)).await;
    }
    let mut jobs: Vec<Held> = t.claim(4).await.iter().map(held).collect();
    jobs.reverse();
    give_back(&t, &jobs).await;
    assert_eq!(t.claim_ids().await, ["high2", "high1", "low2", "low1"]);
}

async fn a_later_requeue_goes_before_an_earlier_one(t: Trial) {
    let jobs = claimed(&t, &["a", "b"]).await;
    give_back(&t, &jobs[..1]).await;
    give_back(&t, &jobs[1..]).await;
    assert_eq!(t.claim_ids().await, ["b", "a"]);
}

async fn a_rejected_one_leaves_the_order_of_the_others(t: Trial) {
    let mut jobs = claimed(&t, &["a", "b", "c"]).await;
    jobs[1] = stale(&jobs[1]);
    let outcomes = t.store.requeue(&t.queue, &jobs).await;
    assert_eq!(outcomes, Ok(vec![Ok(()), Err(rejected(&id("b"))), Ok(())]));
    assert_eq!(t.claim_ids().await, ["a", "c"]);
}
