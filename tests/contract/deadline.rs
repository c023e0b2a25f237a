//! A job that is no longer worth running is archived, unless it runs.

use crate::trial::*;
use sprag::{
    JobId, State, Timestamp, When,
    store::{Ended, Ending, EndingReason, Failure, Pace, Swept},
};
use std::time::Duration;

cases! {
    a_past_deadline_is_refused,
    a_refused_job_makes_no_queue_and_wakes_nobody,
    a_deadline_is_kept_as_a_moment,
    a_waiting_job_expires_to_the_millisecond,
    an_expired_job_tells_so_and_is_kept_for_ninety_days,
    an_expired_job_is_not_promoted,
    a_claim_hands_over_no_expired_job,
    a_claim_fills_up_past_expired_jobs,
    an_active_job_does_not_expire,
    a_job_completes_after_its_deadline,
    a_retry_that_would_be_due_at_the_deadline_expires,
    the_last_attempt_is_exhausted_and_not_expired,
    a_snoozed_job_expires,
    a_requeued_job_expires,
    a_job_that_waits_after_a_crash_expires,
    a_crash_past_the_deadline_expires_the_job,
    a_shared_sweep_expires_if_nobody_has_for_a_second,
    an_expired_job_makes_room,
}

async fn until(t: &Trial, left: Duration) -> JobId {
    t.enqueue(t.job().deadline(When::In(left))).await
}

/// The job ended as expired, now.
async fn assert_expired(t: &Trial, job: &JobId, worker: Option<&Trial>) {
    let (info, at) = (t.show(job).await, t.now().await);
    let worker = worker.map(|t| t.worker.clone());
    let ending = Some(Ending { reason: EndingReason::Expired, at, worker });
    assert_eq!((info.state, info.ending), (State::Archived, ending));
    assert_eq!((info.due_at, info.holder), (None, None));
}

async fn a_past_deadline_is_refused(t: Trial) {
    let now = t.now().await;
    let before = Timestamp::from_millis(now.as_millis() - 1);
    let text = "deadline: is past by the store's clock";
    for past in [When::Now, When::At(now), When::At(before), When::At(Timestamp::from_millis(0))] {
        assert_eq!(t.offer(t.job().deadline(past)).await, Err(invalid(text)), "{past:?}");
    }
    t.enqueue(t.job().deadline(When::At(now + ms(1)))).await;
    t.enqueue(t.job().deadline(When::In(ms(1)))).await;
}

async fn a_refused_job_makes_no_queue_and_wakes_nobody(t: Trial) {
    assert!(t.offer(t.job().deadline(When::Now)).await.is_err());
    assert!(t.store.queue(&t.queue).await.is_err());
    assert!(!t.token().await);
}

async fn a_deadline_is_kept_as_a_moment(t: Trial) {
    let job = build(t.job().deadline(When::In(HOUR)));
    t.advance(secs(5)).await;
    t.offer_all(std::slice::from_ref(&job)).await;
    let deadline = Some(When::At(t.now().await + HOUR));
    assert_eq!(t.envelope(job.id()).await.deadline(), deadline);
    assert_eq!(t.claim(1).await[0].envelope.deadline(), deadline);
}

async fn a_waiting_job_expires_to_the_millisecond(t: Trial) {
    for state in [State::Pending, State::Scheduled, State::Retry] {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job().deadline(When::In(2 * HOUR))).await;
        // A later due time than the deadline.
        if state == State::Scheduled {
            t.sweep_after(HOUR).await;
            t.snooze(&t.claim_one().await, 5 * HOUR).await.expect("snoozed");
        } else {
            t.advance(HOUR).await;
        }
        assert_eq!(t.sweep_after(HOUR - ms(1)).await.expired, 0, "{state}");
        let before = t.info().await;
        let (state_now, reason) = (State::Archived, EndingReason::Expired);
        let ended = vec![Ended { id: job.clone(), state: state_now, reason }];
        let expected = Swept { expired: 1, ended, ..Swept::default() };
        assert_eq!(t.sweep_after(ms(1)).await, expected, "{state}");
        assert_expired(&t, &job, None).await;
        let info = t.info().await;
        assert_eq!((before.unfinished, info.unfinished, info.archived), (1, 0, 1), "{state}");
        assert_eq!(t.sweep().await, Swept::default(), "once");
    }
}

async fn an_expired_job_tells_so_and_is_kept_for_ninety_days(t: Trial) {
    let job = until(&t, HOUR).await;
    t.sweep_after(HOUR).await;
    assert_expired(&t, &job, None).await;
    assert_eq!(t.show(&job).await.evicted_at, Some(t.now().await + 90 * DAY));
    assert_eq!(t.sweep_after(90 * DAY).await.evicted, 1);
}

async fn an_expired_job_is_not_promoted(t: Trial) {
    let job = t.enqueue(t.job().run_at(When::In(HOUR)).deadline(When::In(HOUR))).await;
    let swept = t.sweep_after(HOUR).await;
    assert_eq!((swept.expired, swept.promoted, swept.claimable), (1, 0, false));
    assert_expired(&t, &job, None).await;
}

async fn a_claim_hands_over_no_expired_job(t: Trial) {
    let job = until(&t, secs(5)).await;
    t.advance(secs(5)).await;
    assert_eq!(t.claim(1).await, []);
    assert_expired(&t, &job, None).await;
    let info = t.info().await;
    assert_eq!((info.pending, info.archived, info.unfinished), (0, 1, 0));
    assert_eq!(t.sweep().await.expired, 0, "once");
}

async fn a_claim_fills_up_past_expired_jobs(t: Trial) {
    for _ in 0..5 {
        until(&t, secs(5)).await;
        t.enqueue(t.job().deadline(When::In(secs(6)))).await;
    }
    t.advance(secs(5)).await;
    assert_eq!(t.claim(3).await.len(), 3);
    assert_eq!(t.claim(3).await.len(), 2);
    assert_eq!(t.info().await.archived, 5);
}

async fn an_active_job_does_not_expire(t: Trial) {
    let job = until(&t, secs(5)).await;
    let held = t.claim_one().await;
    assert_eq!(t.sweep_after(secs(6)).await.expired, 0);
    assert_eq!(t.state(&job).await, State::Active);
    assert_eq!(t.extend(&held, LEASE).await, Ok(()));
}

async fn a_job_completes_after_its_deadline(t: Trial) {
    let job = t.enqueue(t.job().deadline(When::In(secs(5))).retention(HOUR)).await;
    let held = t.claim_one().await;
    t.advance(secs(6)).await;
    assert_eq!(t.complete(&held).await, Ok(()));
    assert_eq!(t.state(&job).await, State::Completed);
}

async fn a_retry_that_would_be_due_at_the_deadline_expires(t: Trial) {
    let early = until(&t, secs(5)).await;
    assert_eq!(t.retry(&t.claim_one().await, secs(5) - ms(1)).await, Ok(State::Retry));
    t.cancel(&early).await.expect("cancelled");

    for delay in [secs(5), secs(6)] {
        let job = until(&t, secs(5)).await;
        assert_eq!(t.retry(&t.claim_one().await, delay).await, Ok(State::Archived));
        assert_expired(&t, &job, Some(&t)).await;
        let info = t.show(&job).await;
        assert_eq!((info.attempt, info.errors.len()), (1, 1));
    }
    let info = t.info().await;
    assert_eq!((info.unfinished, info.archived, info.failed_today), (0, 2, 3));
}

async fn the_last_attempt_is_exhausted_and_not_expired(t: Trial) {
    let job = t.enqueue(t.job().max_attempts(1).deadline(When::In(secs(5)))).await;
    assert_eq!(t.retry(&t.claim_one().await, HOUR).await, Ok(State::Archived));
    assert_eq!(t.ending(&job).await, EndingReason::Exhausted);
}

async fn a_snoozed_job_expires(t: Trial) {
    let job = until(&t, secs(5)).await;
    t.snooze(&t.claim_one().await, HOUR).await.expect("snoozed");
    assert_eq!(t.state(&job).await, State::Scheduled);
    assert_eq!(t.sweep_after(secs(5)).await.expired, 1);
    assert_expired(&t, &job, None).await;
}

async fn a_requeued_job_expires(t: Trial) {
    let job = until(&t, secs(5)).await;
    let held = t.claim_one().await;
    t.advance(secs(5)).await;
    assert_eq!(t.requeue(&held).await, Ok(()));
    assert_eq!(t.claim(1).await, []);
    assert_expired(&t, &job, None).await;
}

async fn a_job_that_waits_after_a_crash_expires(t: Trial) {
    let job = until(&t, 2 * LEASE + secs(1)).await;
    t.crash_to(&job, 2).await;
    assert_eq!(t.state(&job).await, State::Retry);
    assert_eq!(t.sweep_after(secs(1)).await.expired, 1);
    assert_expired(&t, &job, None).await;
}

async fn a_crash_past_the_deadline_expires_the_job(t: Trial) {
    let job = until(&t, LEASE).await;
    t.claim_one().await;
    let swept = t.vanish().await;
    assert_eq!((swept.reclaimed, swept.expired, swept.claimable), (1, 1, false));
    assert_expired(&t, &job, Some(&t)).await;
    let info = t.show(&job).await;
    let failure = Failure {
        at: t.now().await,
        attempt: None,
        crash: Some(1),
        worker: Some(t.worker.to_string()),
        error: None,
    };
    assert_eq!((info.crash, info.attempt, info.errors), (1, 0, vec![failure]));
    let info = t.info().await;
    assert_eq!((info.active, info.archived, info.unfinished), (0, 1, 0));
}

async fn a_shared_sweep_expires_if_nobody_has_for_a_second(t: Trial) {
    let shared = || async { t.store.sweep(&t.queue, Pace::Shared).await.expect("sweep") };
    until(&t, secs(5)).await;
    t.sweep_after(secs(5) - ms(1)).await;
    t.advance(ms(999)).await;
    assert_eq!(shared().await.expired, 0);
    t.advance(ms(1)).await;
    assert_eq!(shared().await.expired, 1);
}

async fn an_expired_job_makes_room(t: Trial) {
    t.limit(1).await;
    until(&t, secs(5)).await;
    t.advance(secs(5)).await;
    assert!(t.offer(t.job()).await.is_err(), "nobody has seen it yet");
    t.sweep().await;
    t.enqueue(t.job()).await;
}
