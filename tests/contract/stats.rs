//! What a queue counts.

use crate::trial::*;
use sprag::{State, When, store::QueueInfo};

cases! {
    every_state_is_counted,
    completions_of_the_day_are_counted,
    failures_of_the_day_are_counted,
    nothing_else_counts_as_a_failure,
    a_new_utc_day_counts_from_zero,
    the_oldest_pending_job_is_the_one_that_is_next,
    the_longest_wait_of_all_lanes_counts,
    a_job_waits_from_when_it_was_due,
}

async fn today(t: &Trial) -> (u64, u64) {
    let info = t.info().await;
    (info.completed_today, info.failed_today)
}

async fn every_state_is_counted(t: Trial) {
    for state in [State::Retry, State::Retry, State::Completed, State::Archived, State::Active] {
        t.job_in(state, t.job()).await;
    }
    for state in [State::Cancelled, State::Cancelled, State::Scheduled, State::Pending] {
        t.job_in(state, t.job()).await;
    }
    let expected = QueueInfo {
        queue: t.queue.to_string(),
        pending: 1,
        scheduled: 1,
        active: 1,
        retry: 2,
        completed: 1,
        archived: 1,
        cancelled: 2,
        quarantined: 0,
        unfinished: 5,
        limit: None,
        paused: false,
        oldest_pending_ms: Some(0),
        completed_today: 1,
        failed_today: 3,
    };
    assert_eq!(t.info().await, expected);
}

async fn completions_of_the_day_are_counted(t: Trial) {
    t.job_in(State::Completed, t.job()).await;
    t.enqueue(t.job()).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(today(&t).await, (2, 0));
}

async fn failures_of_the_day_are_counted(t: Trial) {
    t.job_in(State::Retry, t.job()).await;
    t.job_in(State::Archived, t.job()).await;
    t.enqueue(t.job().max_attempts(1)).await;
    t.retry(&t.claim_one().await, HOUR).await.expect("exhausted");
    assert_eq!(today(&t).await, (0, 3));
}

async fn nothing_else_counts_as_a_failure(t: Trial) {
    t.enqueue(t.job()).await;
    t.requeue(&t.claim_one().await).await.expect("requeued");
    t.snooze(&t.claim_one().await, secs(1)).await.expect("snoozed");
    t.sweep_after(secs(1)).await;
    let held = t.claim_one().await;
    t.vanish().await;
    assert!(t.retry(&held, HOUR).await.is_err() && t.complete(&held).await.is_err());
    t.cancel(&held.id).await.expect("cancelled");
    assert_eq!(today(&t).await, (0, 0));
}

async fn a_new_utc_day_counts_from_zero(t: Trial) {
    let day = 24 * 3_600 * 1_000;
    t.advance(ms(day - 1 - t.now().await.as_millis() % day)).await;
    t.job_in(State::Retry, t.job()).await;
    t.job_in(State::Completed, t.job()).await;
    assert_eq!(today(&t).await, (1, 1), "the last millisecond of the day");
    t.advance(ms(1)).await;
    assert_eq!(today(&t).await, (0, 0));
    t.job_in(State::Completed, t.job()).await;
    assert_eq!(today(&t).await, (1, 0));
}

async fn the_oldest_pending_job_is_the_one_that_is_next(t: Trial) {
    t.enqueue_named(&["a"]).await;
    t.advance(secs(3)).await;
    t.enqueue_named(&["b"]).await;
    t.advance(secs(2)).await;
    assert_eq!(t.info().await.oldest_pending_ms, Some(5_000));
    t.claim_one().await;
    assert_eq!(t.info().await.oldest_pending_ms, Some(2_000));
    t.claim_one().await;
    assert_eq!(t.info().await.oldest_pending_ms, None);
}

async fn the_longest_wait_of_all_lanes_counts(t: Trial) {
    for (name, priority) in [("middle", 5), ("low", 0), ("high", 9), ("behind", 5)] {
        t.enqueue(t.named(name).priority(priority)).await;
        t.advance(secs(1)).await;
    }
    assert_eq!(t.info().await.oldest_pending_ms, Some(4_000));
    assert_eq!(t.claim(2).await[1].id, id("middle"));
    assert_eq!(t.info().await.oldest_pending_ms, Some(3_000));
}

async fn a_job_waits_from_when_it_was_due(t: Trial) {
    t.enqueue(t.job().run_at(When::In(HOUR))).await;
    t.sweep_after(HOUR + secs(2)).await;
    assert_eq!(t.info().await.oldest_pending_ms, Some(2_000));
}
