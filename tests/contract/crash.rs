//! A holder that vanished: its lease runs out and is reclaimed.

use crate::trial::*;
use sprag::{
    JobId, State,
    model::{EnvelopeBuilder, MAX_DURATION},
    store::{Failure, Setting},
};
use std::time::Duration;

cases! {
    a_lease_is_reclaimed_to_the_millisecond,
    a_job_is_pending_again_after_its_first_crash,
    a_job_waits_after_its_second_crash,
    each_further_crash_waits_four_times_as_long,
    no_crash_waits_longer_than_ten_years,
    crashes_and_attempts_are_counted_apart,
    crashes_use_up_no_attempts,
    a_crash_is_recorded_with_its_worker,
    crashes_and_attempts_share_the_twenty_failures,
    a_live_lease_is_left_alone,
    one_reclaimed_job_is_claimed_once,
}

/// A job whose fingerprint may crash often.
async fn sturdy(t: &Trial, job: EnvelopeBuilder) -> JobId {
    t.set(Setting::CrashLimit(Some(1_000))).await;
    t.enqueue(job).await
}

fn assert_within(wait: Duration, base: Duration) {
    assert!(wait >= base / 2 && wait <= base * 3 / 2, "{wait:?} is not {base:?} ± 50 %");
}

async fn a_lease_is_reclaimed_to_the_millisecond(t: Trial) {
    t.job_in(State::Active, t.job()).await;
    assert_eq!(t.sweep_after(LEASE - ms(1)).await.reclaimed, 0);
    assert_eq!(t.sweep_after(ms(1)).await.reclaimed, 1);
}

async fn a_job_is_pending_again_after_its_first_crash(t: Trial) {
    let job = t.job_in(State::Active, t.job()).await;
    t.vanish().await;
    let (info, counters) = (t.show(&job).await, t.info().await);
    assert_eq!((info.state, info.crash, info.attempt), (State::Pending, 1, 0));
    assert_eq!((info.holder, info.due_at), (None, None));
    assert_eq!((counters.pending, counters.active, counters.unfinished), (1, 0, 1));
}

async fn a_job_waits_after_its_second_crash(t: Trial) {
    let job = t.enqueue(t.job()).await;
    t.crash_to(&job, 2).await;
    assert_eq!(t.state(&job).await, State::Retry);
    assert_within(t.due_in(&job).await, secs(5));
    let counters = t.info().await;
    assert_eq!((counters.retry, counters.unfinished), (1, 1));
}

async fn each_further_crash_waits_four_times_as_long(t: Trial) {
    let job = sturdy(&t, t.job()).await;
    for (crash, base) in [(2, 5), (3, 20), (4, 80), (5, 320), (6, 1_280)] {
        t.crash_to(&job, crash).await;
        assert_within(t.due_in(&job).await, secs(base));
    }
}

async fn no_crash_waits_longer_than_ten_years(t: Trial) {
    let job = sturdy(&t, t.job()).await;
    // 5 s × 4^13 is more than ten years, 4^16 more than a u32 holds.
    for crash in 15..=19 {
        t.crash_to(&job, crash).await;
        let wait = t.due_in(&job).await;
        assert!(wait >= MAX_DURATION / 2 && wait <= MAX_DURATION, "{wait:?}");
    }
}

async fn crashes_and_attempts_are_counted_apart(t: Trial) {
    let job = t.enqueue(t.job()).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.crash_to(&job, 1).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    let claimed = t.claim(1).await.remove(0);
    assert_eq!((claimed.attempt, claimed.crash), (2, 1));
}

async fn crashes_use_up_no_attempts(t: Trial) {
    let job = t.enqueue(t.job().max_attempts(1)).await;
    t.crash_to(&job, 2).await;
    let info = t.show(&job).await;
    assert_eq!((info.state, info.attempt, info.crash), (State::Retry, 0, 2));
}

async fn a_crash_is_recorded_with_its_worker(t: Trial) {
    let job = t.job_in(State::Active, t.job()).await;
    t.vanish().await;
    let failure = Failure {
        at: t.now().await,
        attempt: None,
        crash: Some(1),
        worker: Some(t.worker.to_string()),
        error: None,
    };
    assert_eq!(t.show(&job).await.errors, [failure]);
}

async fn crashes_and_attempts_share_the_twenty_failures(t: Trial) {
    let job = t.enqueue(t.job()).await;
    t.crash_to(&job, 1).await;
    for _ in 0..20 {
        t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
        t.sweep_after(secs(1)).await;
    }
    t.crash_to(&job, 2).await;
    let errors = t.show(&job).await.errors;
    assert_eq!(errors.len(), 20);
    assert_eq!((errors[0].attempt, errors[0].crash), (Some(2), None));
    assert_eq!((errors[19].attempt, errors[19].crash), (None, Some(2)));
}

async fn a_live_lease_is_left_alone(t: Trial) {
    t.job_in(State::Active, t.named("old")).await;
    t.advance(secs(10)).await;
    t.job_in(State::Active, t.named("new")).await;
    assert_eq!(t.sweep_after(secs(20)).await.reclaimed, 1);
    assert_eq!(t.state(&id("new")).await, State::Active);
    assert_eq!(t.claim_ids().await, ["old"]);
}

async fn one_reclaimed_job_is_claimed_once(t: Trial) {
    t.job_in(State::Active, t.job()).await;
    t.vanish().await;
    assert_eq!(t.sweep().await.reclaimed, 0);
    assert_eq!(t.claim(10).await.len(), 1);
}
