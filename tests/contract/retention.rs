//! A finished job is kept as long as it says, and then it is gone with all that is known of it.

use crate::trial::*;
use sprag::{Codec, State, StoreError, Unique, model::EnvelopeBuilder};
use std::time::Duration;

cases! {
    a_completed_job_is_kept_for_its_retention_to_the_millisecond,
    retention_counts_from_the_end_of_the_job,
    an_archived_job_is_kept_for_ninety_days,
    an_exhausted_job_is_kept_for_ninety_days,
    a_cancelled_job_is_kept_for_seven_days,
    a_longer_retention_of_its_own_keeps_a_job_longer,
    an_evicted_job_is_gone_with_everything,
    an_evicted_job_frees_its_id,
    an_eviction_leaves_the_queue,
    an_unfinished_job_is_never_evicted,
}

async fn assert_kept(t: &Trial, state: State, job: EnvelopeBuilder, kept: Duration) {
    let id = t.job_in(state, job).await;
    assert_eq!(t.show(&id).await.evicted_at, Some(t.now().await + kept));
    assert_eq!(t.sweep_after(kept - ms(1)).await.evicted, 0);
    assert_eq!(t.state(&id).await, state);
    assert_eq!(t.sweep_after(ms(1)).await.evicted, 1);
    assert_eq!(t.find(&id).await, Err(no_job(&id)));
}

async fn a_completed_job_is_kept_for_its_retention_to_the_millisecond(t: Trial) {
    for retention in [ms(1), ms(800), ms(1_999)] {
        let job = t.enqueue(t.job().retention(retention)).await;
        t.complete(&t.claim_one().await).await.expect("completed");
        assert_eq!(t.sweep_after(retention - ms(1)).await.evicted, 0);
        assert_eq!(t.state(&job).await, State::Completed);
        assert_eq!(t.sweep_after(ms(1)).await.evicted, 1);
        assert_eq!(t.find(&job).await, Err(no_job(&job)));
    }
}

async fn retention_counts_from_the_end_of_the_job(t: Trial) {
    let job = t.enqueue(t.job().retention(HOUR)).await;
    let held = t.claim_one().await;
    t.advance(DAY).await;
    t.complete(&held).await.expect("completed");
    assert_eq!(t.show(&job).await.evicted_at, Some(t.now().await + HOUR));
}

async fn an_archived_job_is_kept_for_ninety_days(t: Trial) {
    assert_kept(&t, State::Archived, t.job(), 90 * DAY).await;
    assert_kept(&t, State::Archived, t.job().retention(HOUR), 90 * DAY).await;
}

async fn an_exhausted_job_is_kept_for_ninety_days(t: Trial) {
    let job = t.enqueue(t.job().max_attempts(1)).await;
    t.retry(&t.claim_one().await, HOUR).await.expect("exhausted");
    assert_eq!(t.show(&job).await.evicted_at, Some(t.now().await + 90 * DAY));
}

async fn a_cancelled_job_is_kept_for_seven_days(t: Trial) {
    assert_kept(&t, State::Cancelled, t.job(), 7 * DAY).await;
    assert_kept(&t, State::Cancelled, t.job().retention(HOUR), 7 * DAY).await;
}

async fn a_longer_retention_of_its_own_keeps_a_job_longer(t: Trial) {
    assert_kept(&t, State::Archived, t.job().retention(91 * DAY), 91 * DAY).await;
    assert_kept(&t, State::Cancelled, t.job().retention(8 * DAY), 8 * DAY).await;
    let job = t.job_in(State::Active, t.job().retention(8 * DAY)).await;
    t.cancel(&job).await.expect("cancelled");
    assert_eq!(t.show(&job).await.evicted_at, Some(t.now().await + 8 * DAY));
}

async fn an_evicted_job_is_gone_with_everything(t: Trial) {
    t.enqueue(t.named("a").retention(HOUR)).await;
    t.claim_one().await;
    t.vanish().await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.complete_with(&t.claim_one().await, Some(b"1".to_vec())).await.expect("completed");
    t.sweep_after(HOUR).await;

    t.enqueue(t.named("a").retention(HOUR)).await;
    let info = t.show(&id("a")).await;
    assert_eq!((info.attempt, info.crash, info.errors), (0, 0, vec![]));
    assert_eq!((info.result, info.ending, info.evicted_at), (None, None, None));
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(t.show(&id("a")).await.result, None);
}

async fn an_evicted_job_frees_its_id(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        t.job_in(state, t.named("a").unique(Unique::key("k"))).await;
        assert_eq!(t.sweep_after(90 * DAY).await.evicted, 1);
        t.enqueue(t.named("a").payload("other", Codec::Raw)).await;
    }
}

async fn an_eviction_leaves_the_queue(t: Trial) {
    t.job_in(State::Cancelled, t.job()).await;
    t.sweep_after(7 * DAY).await;
    let info = t.info().await;
    assert_eq!((info.cancelled, info.unfinished), (0, 0));
}

async fn an_unfinished_job_is_never_evicted(t: Trial) {
    let job = t.enqueue(t.job().retention(ms(1))).await;
    assert_eq!(t.sweep_after(91 * DAY).await.evicted, 0);
    assert_eq!(t.find(&job).await.map(|info| info.state), Ok::<_, StoreError>(State::Pending));
}
