//! An extended lease ends later.

use crate::trial::*;
use sprag::State;

cases! {
    a_lease_ends_a_lease_after_its_extension,
    an_extended_job_is_not_reclaimed_before_its_new_end,
    an_extension_can_shorten_a_lease,
    an_extension_after_the_end_revives_a_lease,
    an_extension_keeps_the_fence_and_counts_nothing,
    the_same_job_twice_in_a_call_is_extended_twice,
}

async fn a_lease_ends_a_lease_after_its_extension(t: Trial) {
    let job = t.job_in(State::Active, t.job().retention(DAY)).await;
    let holder = t.show(&job).await.holder.expect("held");
    let held = sprag::store::Held { id: job.clone(), fence: holder.fence };
    t.advance(secs(10)).await;
    assert_eq!(t.extend(&held, secs(40)).await, Ok(()));
    let holder = t.show(&job).await.holder.expect("held");
    assert_eq!(holder.lease_expires_at, t.now().await + secs(40));
}

async fn an_extended_job_is_not_reclaimed_before_its_new_end(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.advance(secs(10)).await;
    t.extend(&held, LEASE).await.expect("extended");
    assert_eq!(t.sweep_after(LEASE - ms(1)).await.reclaimed, 0);
    assert_eq!(t.sweep_after(ms(1)).await.reclaimed, 1);
}

async fn an_extension_can_shorten_a_lease(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.extend(&held, secs(1)).await.expect("extended");
    assert_eq!(t.sweep_after(secs(1)).await.reclaimed, 1);
}

async fn an_extension_after_the_end_revives_a_lease(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.advance(HOUR).await;
    t.extend(&held, LEASE).await.expect("extended");
    assert_eq!(t.sweep_after(LEASE - ms(1)).await.reclaimed, 0);
}

async fn an_extension_keeps_the_fence_and_counts_nothing(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    let before = t.show(&held.id).await;
    t.extend(&held, LEASE).await.expect("extended");
    assert_eq!(t.show(&held.id).await, before);
    assert_eq!(t.info().await.active, 1);
}

async fn the_same_job_twice_in_a_call_is_extended_twice(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    let outcomes = t.store.extend(&t.queue, &[held.clone(), held], LEASE).await;
    assert_eq!(outcomes, Ok(vec![Ok(()), Ok(())]));
}
