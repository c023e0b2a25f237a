//! Where a new job goes.

use crate::trial::*;
use sprag::{Enqueued, State, Timestamp, When};

cases! {
    a_job_due_now_is_pending,
    a_job_due_later_is_scheduled,
    a_delay_counts_from_the_stores_clock,
    a_moment_in_the_past_is_now,
    this_very_moment_is_now,
    a_millisecond_later_is_later,
    the_record_tells_when_the_job_was_enqueued,
    a_new_job_has_failed_and_crashed_never,
}

async fn a_job_due_now_is_pending(t: Trial) {
    let answer = t.offer(t.named("a")).await;
    let enqueued = Enqueued { id: id("a"), state: Some(State::Pending), existing: false };
    assert_eq!(answer, Ok(enqueued));
    assert_eq!(t.state(&id("a")).await, State::Pending);
    let info = t.info().await;
    assert_eq!((info.pending, info.scheduled, info.unfinished), (1, 0, 1));
}

async fn a_job_due_later_is_scheduled(t: Trial) {
    let due = t.now().await + HOUR;
    let answer = t.offer(t.named("a").run_at(When::At(due))).await;
    let enqueued = Enqueued { id: id("a"), state: Some(State::Scheduled), existing: false };
    assert_eq!(answer, Ok(enqueued));
    assert_eq!(t.show(&id("a")).await.due_at, Some(due));
    let info = t.info().await;
    assert_eq!((info.pending, info.scheduled, info.unfinished), (0, 1, 1));
    assert!(t.claim(1).await.is_empty());
}

async fn a_delay_counts_from_the_stores_clock(t: Trial) {
    let job = build(t.job().run_at(When::In(secs(5))));
    t.advance(HOUR).await;
    only(t.offer_all(std::slice::from_ref(&job)).await).expect("admitted");
    let due = t.now().await + secs(5);
    let info = t.show(job.id()).await;
    assert_eq!(info.due_at, Some(due));
    assert_eq!(info.envelope.expect("decodes").0.run_at(), When::At(due));
}

async fn a_moment_in_the_past_is_now(t: Trial) {
    let job = t.enqueue(t.job().run_at(When::At(Timestamp::from_millis(0)))).await;
    let info = t.show(&job).await;
    assert_eq!((info.state, info.due_at), (State::Pending, None));
}

async fn this_very_moment_is_now(t: Trial) {
    let job = t.enqueue(t.job().run_at(When::At(t.now().await))).await;
    assert_eq!(t.state(&job).await, State::Pending);
}

async fn a_millisecond_later_is_later(t: Trial) {
    let at = t.enqueue(t.job().run_at(When::At(t.now().await + ms(1)))).await;
    let after = t.enqueue(t.job().run_at(When::In(ms(1)))).await;
    assert_eq!(t.state(&at).await, State::Scheduled);
    assert_eq!(t.state(&after).await, State::Scheduled);
}

async fn the_record_tells_when_the_job_was_enqueued(t: Trial) {
    let now = t.now().await;
    let job = t.enqueue(t.job().run_at(When::In(HOUR))).await;
    t.sweep_after(HOUR).await;
    assert_eq!(t.show(&job).await.envelope.expect("decodes").1, now);
    assert_eq!(t.claim(1).await[0].enqueued_at, now);
}

async fn a_new_job_has_failed_and_crashed_never(t: Trial) {
    let info = t.show(&t.enqueue(t.job()).await).await;
    assert_eq!((info.attempt, info.crash, info.errors.len()), (0, 0, 0));
    assert_eq!((info.holder, info.result, info.ending, info.evicted_at), (None, None, None, None));
    let claimed = &t.claim(1).await[0];
    assert_eq!((claimed.attempt, claimed.crash), (0, 0));
}
