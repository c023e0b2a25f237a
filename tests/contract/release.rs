//! An operator opens a fingerprint, and its jobs come back.

use crate::trial::*;
use sprag::{
    Fingerprint, JobId, State, StoreError, Unique, When,
    store::{Ending, EndingReason, Operation, Released, Setting},
};

cases! {
    an_open_fingerprint_is_not_found,
    a_released_job_is_pending_with_its_crashes_at_zero,
    a_released_fingerprint_is_open,
    a_second_release_finds_nothing,
    released_jobs_join_at_the_back_the_oldest_first,
    jobs_of_other_content_stay,
    a_release_forgets_the_crashes,
    a_release_of_an_open_fingerprint_forgets_no_crash,
    a_release_without_jobs_opens,
    a_released_job_takes_its_key_again,
    a_job_whose_key_is_held_by_another_is_archived,
    a_released_job_past_its_deadline_expires,
    a_release_minds_no_limit,
    a_release_wakes,
    jobs_that_left_quarantine_do_not_come_back,
}

/// A job that was quarantined and its fingerprint.
async fn closed(t: &Trial, name: &str) -> (JobId, Fingerprint) {
    let job = t.job_in(State::Quarantined, t.named(name)).await;
    (job.clone(), t.fingerprint(&job).await)
}

fn counts(released: u64, archived: u64) -> Released {
    Released { released, archived }
}

async fn an_open_fingerprint_is_not_found(t: Trial) {
    let fingerprint = build(t.job()).fingerprint();
    let absent = Err(StoreError::NotFound(format!("fingerprint {fingerprint}")));
    assert_eq!(t.store.release(&t.queue, &fingerprint).await, absent);
    assert!(t.store.queue(&t.queue).await.is_err(), "it makes no queue");
    for state in [State::Pending, State::Archived] {
        t.job_in(state, t.job()).await;
        assert_eq!(t.store.release(&t.queue, &fingerprint).await, absent);
        t.claim(1).await;
    }
}

async fn a_released_job_is_pending_with_its_crashes_at_zero(t: Trial) {
    t.set(Setting::CrashLimit(Some(1))).await;
    let job = t.enqueue(t.job()).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.claim_one().await;
    assert_eq!(t.vanish().await.quarantined, 1);
    let before = t.show(&job).await;
    assert_eq!(t.release(&t.fingerprint(&job).await).await, counts(1, 0));
    let info = t.show(&job).await;
    assert_eq!((info.state, info.attempt, info.crash), (State::Pending, 1, 0));
    assert_eq!((info.ending, info.evicted_at), (None, None));
    assert_eq!((info.errors, info.envelope), (before.errors, before.envelope));
    let info = t.info().await;
    assert_eq!((info.pending, info.quarantined, info.unfinished), (1, 0, 1));
    let claimed = t.claim(1).await.remove(0);
    assert_eq!((claimed.id, claimed.attempt, claimed.crash), (job, 1, 0));
}

async fn a_released_fingerprint_is_open(t: Trial) {
    let (_, fingerprint) = closed(&t, "a").await;
    t.release(&fingerprint).await;
    assert_eq!(t.store.quarantines(&t.queue).await, Ok(vec![]));
    t.enqueue(t.named("b")).await;
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn a_release_of_an_open_fingerprint_forgets_no_crash(t: Trial) {
    t.set(Setting::CrashLimit(Some(2))).await;
    let job = t.enqueue(t.job()).await;
    t.claim_one().await;
    assert_eq!(t.vanish().await.quarantined, 0);
    let fingerprint = t.fingerprint(&job).await;
    assert!(t.store.release(&t.queue, &fingerprint).await.is_err(), "it is open");
    t.advance(ms(1)).await;
    t.claim_one().await;
    assert_eq!(t.vanish().await.quarantined, 1, "its second crash");
}

async fn a_second_release_finds_nothing(t: Trial) {
    let (_, fingerprint) = closed(&t, "a").await;
    t.release(&fingerprint).await;
    let absent = Err(StoreError::NotFound(format!("fingerprint {fingerprint}")));
    assert_eq!(t.store.release(&t.queue, &fingerprint).await, absent);
}

async fn released_jobs_join_at_the_back_the_oldest_first(t: Trial) {
    t.enqueue_named(&["c", "a", "b"]).await;
    let fingerprint = build(t.job()).fingerprint();
    t.quarantine(&fingerprint).await;
    // One claim moves them all, at one moment.
    assert_eq!(t.claim(1).await, []);
    t.enqueue(t.saying("other").id(id("waiting"))).await;
    assert_eq!(t.release(&fingerprint).await, counts(3, 0));
    assert_eq!(t.claim_ids().await, ["waiting", "a", "b", "c"], "by their ids then");

    let t = t.other_queue().await;
    t.set(Setting::CrashLimit(Some(1))).await;
    for name in ["c", "a", "b"] {
        t.enqueue(t.named(name)).await;
        let held = t.claim_one().await;
        t.advance(ms(1)).await;
        t.extend(&held, LEASE).await.expect("extended");
    }
    for _ in 0..3 {
        t.advance(if t.info().await.active == 3 { LEASE - ms(2) } else { ms(1) }).await;
        assert_eq!(t.sweep().await.quarantined, 1);
    }
    assert_eq!(t.release(&fingerprint).await, counts(3, 0));
    assert_eq!(t.claim_ids().await, ["c", "a", "b"]);
}

async fn jobs_of_other_content_stay(t: Trial) {
    let (job, fingerprint) = closed(&t, "a").await;
    let other = t.job_in(State::Quarantined, t.saying("other")).await;
    assert_eq!(t.release(&fingerprint).await, counts(1, 0));
    assert_eq!((t.state(&job).await, t.state(&other).await), (State::Pending, State::Quarantined));
    let still: Vec<_> = t.store.quarantines(&t.queue).await.expect("quarantines");
    assert_eq!((still.len(), still[0].fingerprint), (1, t.fingerprint(&other).await));
}

async fn a_release_forgets_the_crashes(t: Trial) {
    t.set(Setting::CrashLimit(Some(2))).await;
    let job = t.enqueue(t.job()).await;
    t.claim_one().await;
    t.vanish().await;
    t.quarantine(&t.fingerprint(&job).await).await;
    assert_eq!(t.claim(1).await, []);
    t.release(&t.fingerprint(&job).await).await;
    t.advance(ms(1)).await;
    t.claim_one().await;
    assert_eq!(t.vanish().await.quarantined, 0);
    assert_eq!((t.state(&job).await, t.show(&job).await.crash), (State::Pending, 1));
}

async fn a_release_without_jobs_opens(t: Trial) {
    let fingerprint = build(t.job()).fingerprint();
    t.quarantine(&fingerprint).await;
    assert_eq!(t.release(&fingerprint).await, Released::default());
    t.enqueue(t.job()).await;
}

async fn a_released_job_takes_its_key_again(t: Trial) {
    let job = t.job_in(State::Quarantined, t.job().unique(Unique::key("k"))).await;
    t.release(&t.fingerprint(&job).await).await;
    let next = || t.saying("other").unique(Unique::key("k"));
    assert_eq!(t.offer(next()).await, Err(duplicate(&job)));
    t.complete(&t.claim_one().await).await.expect("completed");
    t.enqueue(next()).await;
}

async fn a_job_whose_key_is_held_by_another_is_archived(t: Trial) {
    let job = t.job_in(State::Quarantined, t.job().unique(Unique::key("k"))).await;
    let free = t.fingerprint(&job).await;
    t.advance(secs(1)).await;
    let holder = t.enqueue(t.saying("other").unique(Unique::key("k"))).await;
    assert_eq!(t.info().await.unfinished, 1);
    assert_eq!(t.release(&free).await, counts(0, 1));
    let (info, at) = (t.show(&job).await, t.now().await);
    let ending = Some(Ending { reason: EndingReason::UniqueKeyTaken, at, worker: None });
    assert_eq!((info.state, info.ending), (State::Archived, ending));
    assert_eq!(info.evicted_at, Some(at + 90 * DAY));
    let info = t.info().await;
    assert_eq!((info.archived, info.quarantined, info.unfinished), (1, 0, 1));
    let third = t.saying("third").unique(Unique::key("k"));
    assert_eq!(t.offer(third).await, Err(duplicate(&holder)));
}

async fn a_released_job_past_its_deadline_expires(t: Trial) {
    let job = t.job_in(State::Quarantined, t.job().deadline(When::In(HOUR))).await;
    assert_eq!(t.sweep_after(HOUR).await.expired, 0, "it is finished");
    assert_eq!(t.release(&t.fingerprint(&job).await).await, counts(1, 0));
    assert_eq!(t.state(&job).await, State::Pending);
    assert_eq!(t.sweep().await.expired, 1);
}

async fn a_release_minds_no_limit(t: Trial) {
    let (_, fingerprint) = closed(&t, "a").await;
    t.limit(0).await;
    assert_eq!(t.release(&fingerprint).await, counts(1, 0));
}

async fn a_release_wakes(t: Trial) {
    let (_, fingerprint) = closed(&t, "a").await;
    t.token().await;
    t.release(&fingerprint).await;
    assert!(t.token().await);
}

async fn jobs_that_left_quarantine_do_not_come_back(t: Trial) {
    let (job, fingerprint) = closed(&t, "a").await;
    t.operate(Operation::Delete, &job).await.expect("deleted");
    assert_eq!(t.release(&fingerprint).await, counts(0, 0));
    let (_, fingerprint) = closed(&t, "b").await;
    assert_eq!(t.sweep_after(90 * DAY).await.evicted, 1);
    assert_eq!(t.release(&fingerprint).await, counts(0, 0));
}
