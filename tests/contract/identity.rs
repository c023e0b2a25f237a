//! An id names one job as long as the job is kept, and the order in which an enqueue is judged.

use crate::trial::*;
use sprag::{Codec, Enqueued, State, StoreError, Unique, When};

cases! {
    the_same_job_again_is_existing_in_every_state,
    an_existing_job_is_not_written_again,
    an_existing_job_wakes_nobody,
    other_content_under_the_same_id_is_a_conflict_in_every_state,
    another_kind_under_the_same_id_is_a_conflict,
    an_id_is_free_once_its_job_is_gone,
    the_same_id_in_two_queues_is_two_jobs,
    a_bound_is_judged_before_the_id,
    the_id_is_judged_before_the_deadline,
    the_id_is_judged_before_the_unique_key,
    a_conflict_is_judged_before_the_unique_key,
    the_id_is_judged_before_backpressure,
    the_unique_key_is_judged_before_backpressure,
}

async fn the_same_job_again_is_existing_in_every_state(t: Trial) {
    for state in UNFINISHED.into_iter().chain(ENDED) {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        let before = (t.show(&job).await, t.info().await);
        let answer = t.offer(t.job().id(job.clone())).await;
        assert_eq!(answer, Ok(Enqueued { id: job.clone(), state: Some(state), existing: true }));
        assert_eq!((t.show(&job).await, t.info().await), before, "{state}");
    }
}

async fn an_existing_job_is_not_written_again(t: Trial) {
    t.enqueue(t.named("a").priority(9)).await;
    let before = t.show(&id("a")).await;
    t.advance(secs(1)).await;
    let again = t.named("a").priority(0).max_attempts(1).header("x", "y").run_at(When::In(HOUR));
    assert!(t.offer(again).await.expect("existing").existing);
    assert_eq!(t.show(&id("a")).await, before);
    assert_eq!(t.claim_ids().await, ["a"]);
}

async fn an_existing_job_wakes_nobody(t: Trial) {
    t.enqueue(t.named("a")).await;
    assert!(t.token().await);
    assert!(t.offer(t.named("a")).await.expect("existing").existing);
    assert!(!t.token().await);
}

async fn other_content_under_the_same_id_is_a_conflict_in_every_state(t: Trial) {
    for state in UNFINISHED.into_iter().chain(ENDED) {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        let before = (t.show(&job).await, t.info().await);
        let other = t.job().id(job.clone()).payload("other", Codec::Raw);
        assert_eq!(t.offer(other).await, Err(conflict(&job)));
        assert_eq!((t.show(&job).await, t.info().await), before, "{state}");
    }
}

async fn another_kind_under_the_same_id_is_a_conflict(t: Trial) {
    t.enqueue(t.named("a")).await;
    let kind = sprag::Kind::new("email:goodbye").expect("kind");
    let other = sprag::Envelope::builder(t.queue.clone(), kind).payload("hello", Codec::Raw);
    assert_eq!(t.offer(other.id(id("a"))).await, Err(conflict(&id("a"))));
}

async fn an_id_is_free_once_its_job_is_gone(t: Trial) {
    t.enqueue(t.named("a")).await;
    let held = t.claim_one().await;
    t.complete(&held).await.expect("completed");
    t.enqueue(t.named("a").payload("other", Codec::Raw)).await;
    assert_eq!(t.claim_ids().await, ["a"]);
}

async fn the_same_id_in_two_queues_is_two_jobs(t: Trial) {
    let other = t.other_queue().await;
    t.enqueue(t.named("a")).await;
    other.enqueue(other.named("a").payload("other", Codec::Raw)).await;
    let (held, others) = (t.claim_one().await, other.claim_one().await);
    t.cancel(&id("a")).await.expect("cancelled");
    assert_eq!(t.complete(&held).await, Err(rejected(&id("a"))));
    assert_eq!(other.state(&id("a")).await, State::Active);
    assert_eq!(other.complete(&others).await, Ok(()));
}

async fn a_bound_is_judged_before_the_id(t: Trial) {
    t.enqueue(t.named("a")).await;
    let other = t.other_queue().await;
    let text = format!("queue: {}; must be {}, as the call's", other.queue, t.queue);
    assert_eq!(t.offer(other.named("a")).await, Err(invalid(&text)));
}

async fn the_id_is_judged_before_the_deadline(t: Trial) {
    t.enqueue(t.named("a")).await;
    let past = || t.named("a").deadline(When::Now);
    assert_eq!(t.offer(past()).await, existing(&id("a"), Some(State::Pending)));
    let other = past().payload("other", Codec::Raw);
    assert_eq!(t.offer(other).await, Err(conflict(&id("a"))));
}

async fn the_id_is_judged_before_the_unique_key(t: Trial) {
    t.enqueue(t.named("a").unique(Unique::key("k"))).await;
    assert!(t.offer(t.named("a").unique(Unique::key("k"))).await.expect("existing").existing);
}

async fn a_conflict_is_judged_before_the_unique_key(t: Trial) {
    t.enqueue(t.named("a")).await;
    t.enqueue(t.named("b").unique(Unique::key("k"))).await;
    let job = t.named("a").payload("other", Codec::Raw).unique(Unique::key("k"));
    assert_eq!(t.offer(job).await, Err(conflict(&id("a"))));
}

async fn the_id_is_judged_before_backpressure(t: Trial) {
    t.enqueue(t.named("a")).await;
    t.limit(1).await;
    assert!(t.offer(t.named("a")).await.expect("existing").existing);
    let other = t.named("a").payload("other", Codec::Raw);
    assert_eq!(t.offer(other).await, Err(conflict(&id("a"))));
}

async fn the_unique_key_is_judged_before_backpressure(t: Trial) {
    t.enqueue(t.named("a").unique(Unique::key("k"))).await;
    t.limit(1).await;
    assert_eq!(t.offer(t.job().unique(Unique::key("k"))).await, Err(duplicate(&id("a"))));
    assert!(matches!(t.offer(t.job()).await, Err(StoreError::Backpressure { .. })));
}
