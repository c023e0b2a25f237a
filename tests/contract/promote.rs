//! A sweep that only promotes, for workers after an outage: it lets leases be.

use crate::trial::*;
use sprag::{
    State, When,
    store::{Pace, Swept},
};

cases! {
    it_promotes_what_is_due_and_tells_what_is_claimable,
    it_tells_what_is_due_next,
    it_reclaims_expires_and_evicts_nothing,
    it_leaves_the_gate_open_for_the_next,
    it_promotes_though_the_gate_is_closed,
    it_makes_no_queue,
    a_lease_that_it_let_be_can_be_extended,
}

async fn promote(t: &Trial) -> Swept {
    t.store.sweep(&t.queue, Pace::Promote).await.expect("sweep")
}

async fn it_promotes_what_is_due_and_tells_what_is_claimable(t: Trial) {
    let scheduled = t.job_in(State::Scheduled, t.job()).await;
    let retried = t.job_in(State::Retry, t.job()).await;
    assert_eq!(promote(&t).await, Swept { next_due: Some(HOUR), ..Swept::default() });
    t.advance(HOUR).await;
    assert_eq!(promote(&t).await, Swept { promoted: 2, claimable: true, ..Swept::default() });
    for id in [&scheduled, &retried] {
        assert_eq!(t.state(id).await, State::Pending);
    }
    assert!(t.token().await, "whoever sleeps is woken");
    assert_eq!(promote(&t).await, Swept { claimable: true, ..Swept::default() });
    assert_eq!(t.claim(2).await.len(), 2);
    assert!(!promote(&t).await.claimable);
}

async fn it_tells_what_is_due_next(t: Trial) {
    t.enqueue(t.job().run_at(When::In(secs(9)))).await;
    t.enqueue(t.job().run_at(When::In(ms(5_001)))).await;
    assert_eq!(promote(&t).await.next_due, Some(ms(5_001)));
    t.advance(ms(5_001)).await;
    assert_eq!(promote(&t).await.next_due, Some(ms(3_999)));
}

async fn it_reclaims_expires_and_evicts_nothing(t: Trial) {
    let kept = t.job_in(State::Completed, t.job()).await;
    let held = t.job_in(State::Active, t.job()).await;
    let expired = t.enqueue(t.job().deadline(When::In(HOUR))).await;
    t.advance(2 * HOUR).await;
    assert_eq!(promote(&t).await, Swept { claimable: true, ..Swept::default() });
    assert_eq!(t.state(&kept).await, State::Completed);
    assert_eq!(t.state(&held).await, State::Active);
    assert_eq!(t.state(&expired).await, State::Pending);
    assert_eq!(t.show(&held).await.crash, 0);
    let swept = t.sweep().await;
    assert_eq!((swept.reclaimed, swept.expired, swept.evicted), (1, 1, 1), "somebody has to");
}

async fn it_leaves_the_gate_open_for_the_next(t: Trial) {
    t.job_in(State::Active, t.job()).await;
    t.advance(LEASE).await;
    promote(&t).await;
    let swept = t.store.sweep(&t.queue, Pace::Shared).await.expect("sweep");
    assert_eq!(swept.reclaimed, 1, "at the same moment");
}

async fn it_promotes_though_the_gate_is_closed(t: Trial) {
    t.enqueue(t.job().run_at(When::In(ms(1)))).await;
    t.store.sweep(&t.queue, Pace::Shared).await.expect("sweep");
    t.advance(ms(1)).await;
    assert_eq!(promote(&t).await.promoted, 1);
}

async fn it_makes_no_queue(t: Trial) {
    assert_eq!(promote(&t).await, Swept::default());
    assert!(t.store.queue(&t.queue).await.is_err());
}

async fn a_lease_that_it_let_be_can_be_extended(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.advance(HOUR).await;
    promote(&t).await;
    t.extend(&held, LEASE).await.expect("it is its holder's still");
    assert_eq!(t.sweep().await.reclaimed, 0);
    t.complete(&held).await.expect("completed");
}
