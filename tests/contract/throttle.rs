//! A throttle key is held for a window after the enqueue, whatever becomes of its job.

use crate::trial::*;
use sprag::{
    State, Unique,
    model::{EnvelopeBuilder, Mode},
    store::Operation,
};
use std::time::Duration;

cases! {
    a_throttle_key_is_held_to_the_millisecond,
    the_window_counts_from_the_enqueue,
    a_throttle_key_comes_back_with_its_job,
    it_stays_held_whatever_becomes_of_the_job,
    it_stays_held_when_the_job_is_deleted,
    it_stays_held_when_the_job_is_evicted,
    it_ends_while_the_job_still_waits,
    the_end_of_an_old_job_does_not_free_the_next_ones_key,
    a_refused_job_does_not_prolong_the_window,
    a_lifecycle_job_is_refused_by_a_throttle_key,
    a_throttle_job_is_refused_by_a_lifecycle_key,
    a_throttle_job_is_refused_by_its_own_former_key,
    a_rerun_does_not_take_the_key_again,
    a_rerun_is_not_refused_by_the_next_ones_window,
    a_release_does_not_take_the_key_again,
    a_batch_of_throttled_jobs_admits_the_first,
}

const WINDOW: Duration = secs(10);

fn throttled(t: &Trial) -> EnvelopeBuilder {
    t.job().unique(Unique::key("k").mode(Mode::Throttle { window: WINDOW }))
}

fn keyed(t: &Trial) -> EnvelopeBuilder {
    t.job().unique(Unique::key("k"))
}

async fn a_throttle_key_is_held_to_the_millisecond(t: Trial) {
    for window in [ms(1), ms(800), ms(1_999)] {
        let unique = Unique::key("k").mode(Mode::Throttle { window });
        let holder = t.enqueue(t.job().unique(unique)).await;
        t.complete(&t.claim_one().await).await.expect("completed");
        t.sweep_after(window - ms(1)).await;
        assert_eq!(t.offer(throttled(&t)).await, Err(duplicate(&holder)), "{window:?}");
        t.sweep_after(ms(1)).await;
    }
    t.enqueue(throttled(&t)).await;
}

async fn the_window_counts_from_the_enqueue(t: Trial) {
    let holder = t.enqueue(throttled(&t)).await;
    t.advance(WINDOW - ms(1)).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(t.offer(throttled(&t)).await, Err(duplicate(&holder)));
    t.advance(ms(1)).await;
    t.enqueue(throttled(&t)).await;
}

async fn a_throttle_key_comes_back_with_its_job(t: Trial) {
    let job = build(throttled(&t));
    t.offer_all(std::slice::from_ref(&job)).await;
    assert_eq!(t.envelope(job.id()).await, job);
}

async fn it_stays_held_whatever_becomes_of_the_job(t: Trial) {
    for state in UNFINISHED.into_iter().chain(ENDED) {
        let t = t.other_queue().await;
        let holder = t.job_in(state, throttled(&t)).await;
        let next = || t.saying("other").unique(Unique::key("k"));
        assert_eq!(t.offer(next()).await, Err(duplicate(&holder)), "{state}");
        t.advance(WINDOW).await;
        t.enqueue(next()).await;
    }
}

async fn it_stays_held_when_the_job_is_deleted(t: Trial) {
    let holder = t.enqueue(throttled(&t)).await;
    t.operate(Operation::Delete, &holder).await.expect("deleted");
    assert_eq!(t.offer(throttled(&t)).await, Err(duplicate(&holder)));
    assert_eq!(t.find(&holder).await, Err(no_job(&holder)), "the holder may be gone");
    t.advance(WINDOW).await;
    t.enqueue(throttled(&t)).await;
}

async fn it_stays_held_when_the_job_is_evicted(t: Trial) {
    let holder = t.enqueue(throttled(&t).retention(ms(1))).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(t.sweep_after(ms(1)).await.evicted, 1);
    assert_eq!(t.offer(throttled(&t)).await, Err(duplicate(&holder)));
}

async fn it_ends_while_the_job_still_waits(t: Trial) {
    for state in UNFINISHED {
        let t = t.other_queue().await;
        t.job_in(state, throttled(&t)).await;
        t.advance(WINDOW).await;
        t.enqueue(throttled(&t)).await;
    }
}

async fn the_end_of_an_old_job_does_not_free_the_next_ones_key(t: Trial) {
    let old = t.enqueue(throttled(&t)).await;
    t.advance(WINDOW).await;
    let next = t.enqueue(throttled(&t)).await;
    t.cancel(&old).await.expect("cancelled");
    t.operate(Operation::Delete, &old).await.expect("deleted");
    assert_eq!(t.offer(throttled(&t)).await, Err(duplicate(&next)));

    let t = t.other_queue().await;
    let old = t.enqueue(throttled(&t)).await;
    t.advance(WINDOW).await;
    let next = t.enqueue(keyed(&t)).await;
    t.cancel(&old).await.expect("cancelled");
    assert_eq!(t.offer(keyed(&t)).await, Err(duplicate(&next)), "nor a lifecycle key");
}

async fn a_refused_job_does_not_prolong_the_window(t: Trial) {
    t.enqueue(throttled(&t)).await;
    t.advance(WINDOW - ms(1)).await;
    assert!(t.offer(throttled(&t)).await.is_err());
    t.advance(ms(1)).await;
    t.enqueue(throttled(&t)).await;
}

async fn a_lifecycle_job_is_refused_by_a_throttle_key(t: Trial) {
    let holder = t.enqueue(throttled(&t)).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(t.offer(keyed(&t)).await, Err(duplicate(&holder)));
    t.advance(WINDOW).await;
    let next = t.enqueue(keyed(&t)).await;
    t.sweep_after(WINDOW).await;
    assert_eq!(t.offer(keyed(&t)).await, Err(duplicate(&next)), "held as its own mode says");
}

async fn a_throttle_job_is_refused_by_a_lifecycle_key(t: Trial) {
    let holder = t.enqueue(keyed(&t)).await;
    t.advance(2 * WINDOW).await;
    assert_eq!(t.offer(throttled(&t)).await, Err(duplicate(&holder)));
    t.complete(&t.claim_one().await).await.expect("completed");
    t.enqueue(throttled(&t)).await;
}

async fn a_throttle_job_is_refused_by_its_own_former_key(t: Trial) {
    t.enqueue(throttled(&t).id(id("a"))).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(t.offer(throttled(&t).id(id("a"))).await, Err(duplicate(&id("a"))));
}

async fn a_rerun_does_not_take_the_key_again(t: Trial) {
    let job = t.job_in(State::Archived, throttled(&t)).await;
    t.advance(WINDOW).await;
    t.operate(Operation::Rerun, &job).await.expect("pending again");
    t.enqueue(keyed(&t)).await;
}

async fn a_rerun_is_not_refused_by_the_next_ones_window(t: Trial) {
    let job = t.job_in(State::Archived, throttled(&t)).await;
    t.advance(WINDOW).await;
    let next = t.enqueue(throttled(&t)).await;
    t.operate(Operation::Rerun, &job).await.expect("pending again");
    assert_eq!(t.claim_ids().await, [next.to_string(), job.to_string()]);
    assert_eq!(t.offer(throttled(&t)).await, Err(duplicate(&next)));
}

async fn a_release_does_not_take_the_key_again(t: Trial) {
    let job = t.job_in(State::Quarantined, throttled(&t)).await;
    t.advance(WINDOW).await;
    let next = t.enqueue(t.saying("other").unique(Unique::key("k"))).await;
    assert_eq!(t.release(&t.fingerprint(&job).await).await.released, 1);
    assert_eq!(t.state(&job).await, State::Pending);
    assert_eq!(t.offer(keyed(&t)).await, Err(duplicate(&next)));
}

async fn a_batch_of_throttled_jobs_admits_the_first(t: Trial) {
    let jobs = ["a", "b", "c"].map(|name| build(throttled(&t).id(id(name))));
    let outcomes = t.offer_all(&jobs).await;
    assert!(outcomes[0].is_ok());
    assert_eq!(outcomes[1..], [Err(duplicate(&id("a"))), Err(duplicate(&id("a")))]);
    let error = t.store.enqueue_atomic(&t.queue, &jobs[1..]).await.expect_err("refused");
    assert_eq!((error.index, error.error), (Some(0), duplicate(&id("a"))));
}
