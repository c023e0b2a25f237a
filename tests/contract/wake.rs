//! Who makes a job claimable, or the earliest due time earlier, leaves one wake token.

use crate::trial::*;
use sprag::{State, When};

cases! {
    a_pending_job_leaves_a_token,
    a_batch_leaves_one_token,
    a_taken_token_is_gone,
    the_first_scheduled_job_leaves_a_token,
    a_job_due_before_all_others_leaves_a_token,
    a_job_not_due_before_another_leaves_none,
    a_job_due_after_a_retry_leaves_none,
    a_refused_job_leaves_no_token,
    a_promotion_leaves_a_token,
    a_sweep_that_finds_nothing_leaves_none,
    a_reclaim_leaves_a_token,
    a_requeue_leaves_a_token,
    a_raised_limit_leaves_a_token,
    a_retry_that_is_due_first_leaves_a_token,
    a_snooze_that_is_due_first_leaves_a_token,
    a_retry_that_is_due_later_leaves_none,
    a_claim_that_leaves_jobs_leaves_a_token,
    a_claim_that_leaves_nothing_leaves_none,
    ending_and_extending_leave_no_token,
    wake_leaves_one_token,
    a_token_of_one_queue_is_not_anothers,
    a_wait_on_several_queues_names_the_one,
    a_wait_is_ended_by_an_enqueue,
    a_wait_without_queues_or_time_ends,
    chained_wake_ups_empty_the_queue,
}

/// A held job in a queue without a token.
async fn quiet_held(t: &Trial) -> sprag::store::Held {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    assert!(t.token().await, "the enqueue left it");
    held
}

async fn a_pending_job_leaves_a_token(t: Trial) {
    assert!(!t.token().await);
    t.enqueue(t.job()).await;
    assert!(t.token().await);
}

async fn a_batch_leaves_one_token(t: Trial) {
    t.offer_all(&t.jobs(3)).await;
    t.enqueue(t.job()).await;
    assert!(t.token().await);
    assert!(!t.token().await);
}

async fn a_taken_token_is_gone(t: Trial) {
    t.enqueue(t.job()).await;
    assert!(t.token().await);
    assert!(!t.token().await);
    t.enqueue(t.job()).await;
    assert!(t.token().await);
}

async fn the_first_scheduled_job_leaves_a_token(t: Trial) {
    t.enqueue(t.job().run_at(When::In(HOUR))).await;
    assert!(t.token().await);
}

async fn a_job_due_before_all_others_leaves_a_token(t: Trial) {
    t.enqueue(t.job().run_at(When::In(HOUR))).await;
    t.token().await;
    t.enqueue(t.job().run_at(When::In(HOUR - ms(1)))).await;
    assert!(t.token().await);
}

async fn a_job_not_due_before_another_leaves_none(t: Trial) {
    t.enqueue(t.job().run_at(When::In(HOUR))).await;
    t.token().await;
    t.enqueue(t.job().run_at(When::In(HOUR + ms(1)))).await;
    t.enqueue(t.job().run_at(When::In(HOUR))).await;
    assert!(!t.token().await);
}

async fn a_job_due_after_a_retry_leaves_none(t: Trial) {
    t.job_in(State::Retry, t.job()).await;
    t.token().await;
    t.enqueue(t.job().run_at(When::In(2 * HOUR))).await;
    assert!(!t.token().await);
    t.enqueue(t.job().run_at(When::In(secs(1)))).await;
    assert!(t.token().await);
}

async fn a_refused_job_leaves_no_token(t: Trial) {
    t.limit(0).await;
    t.token().await;
    assert!(t.offer(t.job()).await.is_err());
    assert!(t.offer(t.job().remember(HOUR)).await.is_err());
    assert!(!t.token().await);
}

async fn a_promotion_leaves_a_token(t: Trial) {
    t.enqueue(t.job().run_at(When::In(secs(1)))).await;
    t.token().await;
    t.sweep_after(secs(1)).await;
    assert!(t.token().await);
}

async fn a_sweep_that_finds_nothing_leaves_none(t: Trial) {
    t.enqueue(t.job().run_at(When::In(secs(2)))).await;
    t.job_in(State::Completed, t.job()).await;
    t.token().await;
    t.sweep_after(secs(1)).await;
    assert!(!t.token().await);
}

async fn a_reclaim_leaves_a_token(t: Trial) {
    quiet_held(&t).await;
    t.vanish().await;
    assert!(t.token().await);
    t.claim_one().await;
    t.vanish().await;
    assert_eq!(t.info().await.retry, 1);
    assert!(t.token().await, "its due time is the earliest");
}

async fn a_requeue_leaves_a_token(t: Trial) {
    let held = quiet_held(&t).await;
    t.requeue(&held).await.expect("requeued");
    assert!(t.token().await);
}

async fn a_raised_limit_leaves_a_token(t: Trial) {
    t.limit(1).await;
    t.token().await;
    t.limit(2).await;
    assert!(t.token().await);
    t.store.limit(&t.queue, None).await.expect("lifted");
    assert!(t.token().await);
}

async fn a_retry_that_is_due_first_leaves_a_token(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    let held = quiet_held(&t).await;
    t.retry(&held, secs(1)).await.expect("retried");
    assert!(t.token().await);
}

async fn a_snooze_that_is_due_first_leaves_a_token(t: Trial) {
    t.job_in(State::Retry, t.job()).await;
    let held = quiet_held(&t).await;
    t.snooze(&held, secs(1)).await.expect("snoozed");
    assert!(t.token().await);
}

async fn a_retry_that_is_due_later_leaves_none(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    let held = quiet_held(&t).await;
    t.retry(&held, 2 * HOUR).await.expect("retried");
    assert!(!t.token().await);
    let held = quiet_held(&t).await;
    t.snooze(&held, 2 * HOUR).await.expect("snoozed");
    assert!(!t.token().await);
}

async fn a_claim_that_leaves_jobs_leaves_a_token(t: Trial) {
    t.offer_all(&t.jobs(2)).await;
    assert!(t.token().await);
    t.claim_one().await;
    assert!(t.token().await);
}

async fn a_claim_that_leaves_nothing_leaves_none(t: Trial) {
    t.offer_all(&t.jobs(2)).await;
    t.job_in(State::Scheduled, t.job()).await;
    assert!(t.token().await);
    t.claim(2).await;
    assert!(!t.token().await);
    t.claim(2).await;
    assert!(!t.token().await);
}

async fn ending_and_extending_leave_no_token(t: Trial) {
    for verb in [Fenced::Extend, Fenced::Complete, Fenced::Archive] {
        let held = quiet_held(&t).await;
        verb.apply(&t, &held).await.expect("held");
        assert!(!t.token().await, "{verb:?}");
    }
    let held = quiet_held(&t).await;
    t.cancel(&held.id).await.expect("cancelled");
    assert!(!t.token().await);
}

async fn wake_leaves_one_token(t: Trial) {
    for _ in 0..2 {
        t.store.wake(&t.queue).await.expect("wake");
    }
    assert!(t.token().await);
    assert!(!t.token().await);
    assert!(t.store.queue(&t.queue).await.is_err(), "it makes no queue");
}

async fn a_token_of_one_queue_is_not_anothers(t: Trial) {
    t.enqueue(t.job()).await;
    assert!(!t.other_queue().await.token().await);
    assert!(t.token().await);
}

async fn a_wait_on_several_queues_names_the_one(t: Trial) {
    let others = [t.other_queue().await, t.other_queue().await];
    let queues = [&others[0], &t, &others[1]].map(|t| t.queue.clone());
    t.enqueue(t.job()).await;
    let wait = t.store.wait(&queues, secs(5)).await;
    assert_eq!(wait, Ok(Some(t.queue.clone())));
    assert_eq!(t.store.wait(&queues, ms(20)).await, Ok(None));
}

async fn a_wait_is_ended_by_an_enqueue(t: Trial) {
    let waiter = t.clone();
    let queues = [t.queue.clone()];
    let waiting = tokio::spawn(async move { waiter.store.wait(&queues, secs(10)).await });
    tokio::task::yield_now().await;
    t.enqueue(t.job()).await;
    assert_eq!(waiting.await.expect("no panic"), Ok(Some(t.queue.clone())));
}

async fn a_wait_without_queues_or_time_ends(t: Trial) {
    assert_eq!(t.store.wait(&[], ms(20)).await, Ok(None));
    let queues = [t.queue.clone()];
    for timeout in [secs(0), std::time::Duration::from_micros(400)] {
        assert_eq!(t.store.wait(&queues, timeout).await, Ok(None), "{timeout:?}");
    }
}

async fn chained_wake_ups_empty_the_queue(t: Trial) {
    t.offer_all(&t.jobs(5)).await;
    let mut claimed = 0;
    while t.token().await {
        claimed += t.claim(2).await.len();
    }
    assert_eq!(claimed, 5);
}
