//! What a sweep does and tells.

use crate::trial::*;
use sprag::{
    State, When,
    store::{Pace, Swept},
};

cases! {
    an_absent_queue_sweeps_to_nothing_and_is_not_made,
    a_sweep_counts_what_it_did,
    a_job_is_promoted_to_the_millisecond,
    a_sweep_tells_whether_something_is_claimable,
    a_sweep_tells_what_is_due_next,
    a_retry_is_due_next_as_well,
    a_sweep_does_all_of_it,
    a_second_sweep_finds_nothing_to_do,
    a_shared_sweep_reclaims_if_nobody_has_for_a_second,
    a_shared_sweep_promotes_at_any_time,
    a_sweep_now_does_everything_at_any_time,
    a_sweep_now_counts_as_the_last_one,
    one_queues_sweep_is_not_anothers,
}

async fn shared(t: &Trial) -> Swept {
    t.store.sweep(&t.queue, Pace::Shared).await.expect("sweep")
}

async fn an_absent_queue_sweeps_to_nothing_and_is_not_made(t: Trial) {
    assert_eq!(t.sweep().await, Swept::default());
    assert_eq!(shared(&t).await, Swept::default());
    assert!(t.store.queue(&t.queue).await.is_err());
}

async fn a_sweep_counts_what_it_did(t: Trial) {
    t.job_in(State::Retry, t.job()).await;
    t.job_in(State::Scheduled, t.job()).await;
    t.job_in(State::Scheduled, t.job()).await;
    t.job_in(State::Completed, t.job()).await;
    t.job_in(State::Active, t.saying("other")).await;
    t.quarantine(&build(t.saying("other")).fingerprint()).await;
    t.job_in(State::Active, t.job().deadline(When::In(HOUR))).await;
    t.job_in(State::Active, t.job()).await;
    t.enqueue(t.job().deadline(When::In(HOUR))).await;
    let expected = Swept {
        promoted: 3,
        reclaimed: 3,
        quarantined: 1,
        expired: 2,
        evicted: 1,
        claimable: true,
        next_due: None,
        ended: Vec::new(),
    };
    let mut swept = t.sweep_after(HOUR).await;
    assert_eq!(std::mem::take(&mut swept.ended).len(), 3);
    assert_eq!(swept, expected);
    let info = t.info().await;
    assert_eq!((info.pending, info.scheduled, info.retry, info.active), (4, 0, 0, 0));
}

async fn a_job_is_promoted_to_the_millisecond(t: Trial) {
    let job = t.enqueue(t.job().run_at(When::In(ms(800)))).await;
    assert_eq!(t.sweep_after(ms(799)).await.promoted, 0);
    assert_eq!(t.state(&job).await, State::Scheduled);
    assert_eq!(t.sweep_after(ms(1)).await.promoted, 1);
    let info = t.show(&job).await;
    assert_eq!((info.state, info.due_at), (State::Pending, None));
}

async fn a_sweep_tells_whether_something_is_claimable(t: Trial) {
    t.enqueue(t.job()).await;
    assert!(t.sweep().await.claimable);
    let held = t.claim_one().await;
    assert!(!t.sweep().await.claimable);
    t.requeue(&held).await.expect("requeued");
    assert!(t.sweep().await.claimable);
    t.cancel(&held.id).await.expect("cancelled");
    assert!(!t.sweep().await.claimable, "a ghost is not claimable");
}

async fn a_sweep_tells_what_is_due_next(t: Trial) {
    t.enqueue(t.job()).await;
    assert_eq!(t.sweep().await.next_due, None);
    t.enqueue(t.job().run_at(When::In(secs(9)))).await;
    let near = t.enqueue(t.job().run_at(When::In(ms(5_001)))).await;
    assert_eq!(t.sweep().await.next_due, Some(ms(5_001)));
    assert_eq!(t.sweep_after(secs(5)).await.next_due, Some(ms(1)));
    t.cancel(&near).await.expect("cancelled");
    assert_eq!(shared(&t).await.next_due, Some(secs(4)));
    assert_eq!(t.sweep_after(secs(4)).await.next_due, None);
}

async fn a_retry_is_due_next_as_well(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    t.enqueue(t.job()).await;
    t.retry(&t.claim_one().await, secs(7)).await.expect("retried");
    assert_eq!(t.sweep().await.next_due, Some(secs(7)));
}

async fn a_sweep_does_all_of_it(t: Trial) {
    let later = |_| build(t.job().run_at(When::In(secs(1))));
    t.offer_all(&(0..700).map(later).collect::<Vec<_>>()).await;
    t.offer_all(&(0..700).map(|_| build(t.job().retention(secs(1)))).collect::<Vec<_>>()).await;
    for job in t.claim(450).await {
        t.complete(&held(&job)).await.expect("completed");
    }
    assert_eq!(t.claim(250).await.len(), 250);
    let swept = t.sweep_after(LEASE).await;
    assert_eq!((swept.promoted, swept.reclaimed, swept.evicted), (700, 250, 450));
}

async fn a_second_sweep_finds_nothing_to_do(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    t.job_in(State::Completed, t.job()).await;
    t.job_in(State::Active, t.job()).await;
    t.sweep_after(HOUR).await;
    assert_eq!(t.sweep().await, Swept { claimable: true, ..Swept::default() });
}

async fn a_shared_sweep_reclaims_if_nobody_has_for_a_second(t: Trial) {
    t.job_in(State::Completed, t.job()).await;
    t.job_in(State::Active, t.job()).await;
    t.advance(HOUR - ms(1)).await;
    assert_eq!(shared(&t).await.reclaimed, 1, "the first does it");
    t.claim_one().await;
    t.advance(ms(1)).await;
    assert_eq!(shared(&t).await.evicted, 0);
    t.advance(ms(998)).await;
    assert_eq!(shared(&t).await.evicted, 0, "999 ms later");
    t.advance(ms(1)).await;
    assert_eq!(shared(&t).await.evicted, 1, "1,000 ms later");
    t.advance(LEASE).await;
    assert_eq!(shared(&t).await.reclaimed, 1);
}

async fn a_shared_sweep_promotes_at_any_time(t: Trial) {
    shared(&t).await;
    t.enqueue(t.job().run_at(When::In(ms(1)))).await;
    shared(&t).await;
    t.advance(ms(1)).await;
    let swept = shared(&t).await;
    assert_eq!((swept.promoted, swept.claimable), (1, true));
}

async fn a_sweep_now_does_everything_at_any_time(t: Trial) {
    t.job_in(State::Active, t.job()).await;
    t.advance(LEASE - ms(1)).await;
    shared(&t).await;
    assert_eq!(t.sweep_after(ms(1)).await.reclaimed, 1);
}

async fn a_sweep_now_counts_as_the_last_one(t: Trial) {
    t.job_in(State::Active, t.job()).await;
    t.sweep_after(LEASE - ms(1)).await;
    t.advance(ms(1)).await;
    assert_eq!(shared(&t).await.reclaimed, 0);
    t.advance(ms(999)).await;
    assert_eq!(shared(&t).await.reclaimed, 1);
}

async fn one_queues_sweep_is_not_anothers(t: Trial) {
    let other = t.other_queue().await;
    for t in [&t, &other] {
        t.job_in(State::Active, t.job()).await;
    }
    t.advance(LEASE).await;
    assert_eq!(shared(&t).await.reclaimed, 1);
    assert_eq!(shared(&other).await.reclaimed, 1);
}
