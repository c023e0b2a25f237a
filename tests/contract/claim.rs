//! What a claim hands over.

use crate::trial::*;
use sprag::{
    State,
    store::{Claim, Holder},
};

cases! {
    a_claimed_job_is_active_and_held,
    a_claim_hands_over_the_whole_envelope,
    a_claim_takes_at_most_what_it_asks_for,
    a_claimed_job_is_not_claimed_again,
    an_empty_queue_gives_nothing,
    an_absent_queue_gives_nothing_and_is_not_made,
    only_pending_jobs_are_claimed,
    a_claim_of_a_thousand_takes_a_thousand,
    a_lease_ends_a_lease_after_the_claim,
}

async fn a_claimed_job_is_active_and_held(t: Trial) {
    t.enqueue(t.named("a")).await;
    let claimed = t.claim(1).await.remove(0);
    let info = t.show(&id("a")).await;
    let holder = Holder {
        worker: t.worker.clone(),
        fence: claimed.fence,
        lease_expires_at: claimed.lease_expires_at,
    };
    assert_eq!((info.state, info.holder), (State::Active, Some(holder)));
    let counters = t.info().await;
    assert_eq!((counters.pending, counters.active, counters.unfinished), (0, 1, 1));
}

async fn a_claim_hands_over_the_whole_envelope(t: Trial) {
    let job = build(t.job().priority(7).max_attempts(3).timeout(secs(9)).header("a", "b"));
    t.offer_all(std::slice::from_ref(&job)).await;
    let claimed = t.claim(1).await.remove(0);
    assert_eq!(claimed.id, *job.id());
    assert_eq!((claimed.envelope, claimed.enqueued_at), (job, t.now().await));
}

async fn a_claim_takes_at_most_what_it_asks_for(t: Trial) {
    t.enqueue_named(&["a", "b", "c"]).await;
    assert_eq!(t.claim(2).await.len(), 2);
    assert_eq!(t.claim(2).await.len(), 1);
}

async fn a_claimed_job_is_not_claimed_again(t: Trial) {
    t.enqueue(t.job()).await;
    t.claim_one().await;
    assert!(t.other_worker().claim(10).await.is_empty());
}

async fn an_empty_queue_gives_nothing(t: Trial) {
    t.limit(1).await;
    let claim = t.store.claim(&t.queue, &t.worker, 10, LEASE).await;
    assert_eq!(claim, Ok(Claim::default()));
}

async fn an_absent_queue_gives_nothing_and_is_not_made(t: Trial) {
    let claim = t.store.claim(&t.queue, &t.worker, 10, LEASE).await;
    assert_eq!(claim, Ok(Claim::default()));
    assert!(t.store.queue(&t.queue).await.is_err());
}

async fn only_pending_jobs_are_claimed(t: Trial) {
    for state in UNFINISHED.into_iter().chain(ENDED).filter(|state| *state != State::Pending) {
        t.job_in(state, t.saying(state.as_str())).await;
    }
    assert!(t.claim(10).await.is_empty());
}

async fn a_claim_of_a_thousand_takes_a_thousand(t: Trial) {
    t.offer_all(&t.jobs(1_000)).await;
    t.enqueue(t.job()).await;
    assert_eq!(t.claim(1_000).await.len(), 1_000);
    assert_eq!(t.info().await.pending, 1);
}

async fn a_lease_ends_a_lease_after_the_claim(t: Trial) {
    t.enqueue(t.job()).await;
    t.advance(secs(7)).await;
    assert_eq!(t.claim(1).await[0].lease_expires_at, t.now().await + LEASE);
}
