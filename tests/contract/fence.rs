//! Ownership is (id, fence). Whoever does not hold a job changes nothing.

use crate::trial::*;
use sprag::{Fence, State, store::Held};

cases! {
    a_fence_is_the_clock_in_microseconds_or_more,
    fences_increase_while_the_clock_stands,
    the_jobs_of_a_claim_share_its_fence,
    fences_increase_over_the_end_of_all_jobs,
    an_expired_lease_that_is_not_reclaimed_still_counts,
    a_reclaimed_job_rejects_its_old_holder,
    a_job_that_another_holds_rejects_its_old_holder,
    a_job_that_its_own_worker_holds_again_rejects_its_old_fence,
    a_retried_job_rejects_its_old_holder,
    a_cancelled_job_rejects_its_holder,
    a_settled_job_rejects_its_holder,
    a_wrong_fence_is_rejected,
    a_job_that_never_was_is_rejected,
    a_job_that_nobody_claimed_is_rejected,
    a_job_of_an_absent_queue_is_rejected,
    a_rejected_holder_does_not_disturb_the_rest_of_its_call,
}

/// No verb of this holder does anything.
async fn assert_rejected(t: &Trial, held: &Held) {
    for verb in Fenced::all() {
        let before = (t.find(&held.id).await, t.store.queue(&t.queue).await);
        assert_eq!(verb.apply(t, held).await, Err(rejected(&held.id)), "{verb:?}");
        assert_eq!((t.find(&held.id).await, t.store.queue(&t.queue).await), before, "{verb:?}");
    }
}

async fn a_fence_is_the_clock_in_microseconds_or_more(t: Trial) {
    for _ in 0..2 {
        t.advance(HOUR).await;
        t.enqueue(t.job()).await;
        let fence = t.claim_one().await.fence;
        assert_eq!(fence.0 / 1_000, t.now().await.as_millis());
    }
}

async fn fences_increase_while_the_clock_stands(t: Trial) {
    t.offer_all(&t.jobs(20)).await;
    let mut last = Fence(0);
    for _ in 0..20 {
        let fence = t.claim_one().await.fence;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
    }
}

async fn the_jobs_of_a_claim_share_its_fence(t: Trial) {
    t.offer_all(&t.jobs(4)).await;
    let (first, second) = (t.claim(2).await, t.claim(2).await);
    assert_eq!(first[0].fence, first[1].fence);
    assert_eq!(second[0].fence, second[1].fence);
    assert!(first[0].fence < second[0].fence);
}

async fn fences_increase_over_the_end_of_all_jobs(t: Trial) {
    t.enqueue(t.named("a")).await;
    let first = t.claim_one().await;
    t.complete(&first).await.expect("completed");
    t.enqueue(t.named("a")).await;
    assert!(t.claim_one().await.fence > first.fence);
    assert_rejected(&t, &first).await;
}

async fn an_expired_lease_that_is_not_reclaimed_still_counts(t: Trial) {
    for verb in Fenced::all() {
        let t = t.other_queue().await;
        t.enqueue(t.job()).await;
        let held = t.claim_one().await;
        t.advance(2 * LEASE).await;
        assert_eq!(verb.apply(&t, &held).await, Ok(()), "{verb:?}");
        let reclaimed = u64::from(matches!(verb, Fenced::Progress));
        assert_eq!(t.sweep().await.reclaimed, reclaimed, "{verb:?}");
    }
}

async fn a_reclaimed_job_rejects_its_old_holder(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    assert_eq!(t.vanish().await.reclaimed, 1);
    assert_rejected(&t, &held).await;
    assert_eq!(t.claim_one().await.id, held.id);
}

async fn a_job_that_another_holds_rejects_its_old_holder(t: Trial) {
    t.enqueue(t.job()).await;
    let old = t.claim_one().await;
    t.vanish().await;
    let other = t.other_worker();
    let new = other.claim_one().await;
    assert_rejected(&t, &old).await;
    assert_eq!(t.show(&old.id).await.holder.expect("held").worker, other.worker);
    assert_eq!(other.complete(&new).await, Ok(()));
}

async fn a_job_that_its_own_worker_holds_again_rejects_its_old_fence(t: Trial) {
    t.enqueue(t.job()).await;
    let old = t.claim_one().await;
    t.requeue(&old).await.expect("requeued");
    let new = t.claim_one().await;
    assert_rejected(&t, &old).await;
    assert_eq!(t.complete(&new).await, Ok(()));
}

async fn a_retried_job_rejects_its_old_holder(t: Trial) {
    t.enqueue(t.job()).await;
    let old = t.claim_one().await;
    t.retry(&old, HOUR).await.expect("retried");
    assert_rejected(&t, &old).await;
    t.sweep_after(HOUR).await;
    assert_rejected(&t, &old).await;
}

async fn a_cancelled_job_rejects_its_holder(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.cancel(&held.id).await.expect("cancelled");
    assert_rejected(&t, &held).await;
    assert_eq!(t.state(&held.id).await, State::Cancelled);
}

async fn a_settled_job_rejects_its_holder(t: Trial) {
    // An extended job is still held.
    for verb in Fenced::SETTLING.into_iter() {
        for retention in [None, Some(DAY)] {
            let t = t.other_queue().await;
            t.enqueue(retention.into_iter().fold(t.job(), |job, d| job.retention(d))).await;
            let held = t.claim_one().await;
            verb.apply(&t, &held).await.expect("held");
            assert_rejected(&t, &held).await;
        }
    }
}

async fn a_wrong_fence_is_rejected(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    for fence in [0, held.fence.0 - 1, held.fence.0 + 1, u64::MAX] {
        assert_rejected(&t, &Held { id: held.id.clone(), fence: Fence(fence) }).await;
    }
    assert_eq!(t.complete(&held).await, Ok(()));
}

async fn a_job_that_never_was_is_rejected(t: Trial) {
    t.enqueue(t.job()).await;
    let fence = t.claim_one().await.fence;
    assert_rejected(&t, &Held { id: id("nobody"), fence }).await;
}

async fn a_job_that_nobody_claimed_is_rejected(t: Trial) {
    for state in [State::Scheduled, State::Retry, State::Pending] {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        assert_rejected(&t, &Held { id: job, fence: Fence(0) }).await;
    }
}

async fn a_job_of_an_absent_queue_is_rejected(t: Trial) {
    assert_rejected(&t, &Held { id: id("a"), fence: Fence(1) }).await;
    assert!(t.store.queue(&t.queue).await.is_err(), "nothing makes the queue");
}

async fn a_rejected_holder_does_not_disturb_the_rest_of_its_call(t: Trial) {
    t.offer_all(&t.jobs(2)).await;
    let jobs: Vec<Held> = t.claim(2).await.iter().map(held).collect();
    let mixed = [jobs[0].clone(), stale(&jobs[1]), jobs[1].clone()];
    let outcomes = t.store.extend(&t.queue, &mixed, HOUR).await.expect("extend");
    assert_eq!(outcomes, [Ok(()), Err(rejected(&jobs[1].id)), Ok(())]);
    assert_eq!(t.vanish().await.reclaimed, 0, "both are extended");
}
