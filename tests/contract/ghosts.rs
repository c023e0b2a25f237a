//! What leaves the middle of a lane, seen from outside: never claimed, never in the way.

use crate::trial::*;
use sprag::{
    Enqueued, JobId, State,
    store::{Change, Operation},
};

cases! {
    a_job_cancelled_in_the_middle_is_skipped,
    a_claim_fills_up_past_cancelled_jobs,
    a_job_cancelled_behind_the_claim_is_skipped_later,
    a_cancelled_job_still_owns_its_id,
    an_evicted_id_enqueued_again_runs_once,
    an_evicted_id_enqueued_again_stands_at_the_back,
    an_id_cancelled_twice_runs_once,
    an_id_that_moves_to_another_lane_runs_once_and_hides_nothing,
    a_requeued_job_runs_past_ghosts_of_its_own_id,
    fifteen_hundred_cancelled_jobs_hide_no_good_one,
    a_lane_of_cancelled_jobs_is_empty,
}

/// Cancels a job and lets its record go, so that its id is free while its place in the lane is not.
async fn cancel_and_evict(t: &Trial, name: &str) {
    assert_eq!(t.cancel(&id(name)).await, Ok(Change::Changed));
    assert_eq!(t.sweep_after(7 * DAY).await.evicted, 1);
}

async fn a_job_cancelled_in_the_middle_is_skipped(t: Trial) {
    t.enqueue_named(&["a", "b", "c"]).await;
    t.cancel(&id("b")).await.expect("cancelled");
    assert_eq!(t.claim_ids().await, ["a", "c"]);
}

async fn a_claim_fills_up_past_cancelled_jobs(t: Trial) {
    t.enqueue_named(&["a", "b", "c", "d"]).await;
    t.cancel(&id("a")).await.expect("cancelled");
    t.cancel(&id("c")).await.expect("cancelled");
    assert_eq!(t.claim(2).await.len(), 2);
}

async fn a_job_cancelled_behind_the_claim_is_skipped_later(t: Trial) {
    t.enqueue_named(&["a", "b", "c"]).await;
    t.cancel(&id("b")).await.expect("cancelled");
    assert_eq!(t.claim_one().await.id, id("a"));
    assert_eq!(t.info().await.pending, 1);
    assert_eq!(t.claim_one().await.id, id("c"));
}

async fn a_cancelled_job_still_owns_its_id(t: Trial) {
    t.enqueue_named(&["a"]).await;
    t.cancel(&id("a")).await.expect("cancelled");
    let existing = Enqueued { id: id("a"), state: Some(State::Cancelled), existing: true };
    assert_eq!(t.offer(t.named("a")).await, Ok(existing));
    assert!(t.claim(10).await.is_empty());
}

async fn an_evicted_id_enqueued_again_runs_once(t: Trial) {
    t.enqueue_named(&["a"]).await;
    cancel_and_evict(&t, "a").await;
    t.enqueue_named(&["a"]).await;
    assert_eq!(t.info().await.pending, 1);
    assert_eq!(t.claim_ids().await, ["a"]);
    assert!(t.claim(10).await.is_empty());
}

async fn an_evicted_id_enqueued_again_stands_at_the_back(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    cancel_and_evict(&t, "a").await;
    t.enqueue_named(&["a"]).await;
    assert_eq!(t.claim_ids().await, ["b", "a"]);
}

async fn an_id_cancelled_twice_runs_once(t: Trial) {
    for _ in 0..2 {
        t.enqueue_named(&["a"]).await;
        cancel_and_evict(&t, "a").await;
    }
    t.enqueue_named(&["a", "b"]).await;
    assert_eq!(t.claim_ids().await, ["a", "b"]);
    assert_eq!(t.info().await.unfinished, 2);
}

async fn an_id_that_moves_to_another_lane_runs_once_and_hides_nothing(t: Trial) {
    t.enqueue_named(&["a"]).await;
    cancel_and_evict(&t, "a").await;
    t.enqueue(t.named("a").priority(9)).await;
    t.enqueue_named(&["b"]).await;
    assert_eq!(t.claim_ids().await, ["a", "b"]);
    let held = sprag::store::Held {
        id: id("a"),
        fence: t.show(&id("a")).await.holder.expect("held").fence,
    };
    t.complete(&held).await.expect("completed");
    t.enqueue_named(&["a", "c"]).await;
    assert_eq!(t.claim_ids().await, ["a", "c"]);
}

async fn a_requeued_job_runs_past_ghosts_of_its_own_id(t: Trial) {
    // The ghost of "a" lies in lane 4 behind "front"; the job comes through lane 4 as well.
    t.enqueue_named(&["front", "a", "back"]).await;
    cancel_and_evict(&t, "a").await;
    t.enqueue_named(&["a"]).await;
    let front = t.claim_one().await;
    t.requeue(&front).await.expect("requeued");
    assert_eq!(t.claim_ids().await, ["front", "back", "a"]);
    assert_eq!(t.info().await.unfinished, 3);
}

async fn fifteen_hundred_cancelled_jobs_hide_no_good_one(t: Trial) {
    let jobs = t.jobs(1_500);
    for slice in jobs.chunks(750) {
        t.offer_all(slice).await;
    }
    t.enqueue_named(&["good"]).await;
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id().clone()).collect();
    for slice in ids.chunks(750) {
        let outcomes = t.store.operate(&t.queue, Operation::Cancel, slice).await.expect("cancel");
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(Change::Changed)));
    }
    assert_eq!(t.info().await.unfinished, 1);
    assert_eq!(t.claim_one().await.id, id("good"));
}

async fn a_lane_of_cancelled_jobs_is_empty(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    t.cancel(&id("a")).await.expect("cancelled");
    t.cancel(&id("b")).await.expect("cancelled");
    assert!(t.claim(1).await.is_empty());
    assert!(!t.sweep().await.claimable);
    assert_eq!(t.info().await.oldest_pending_ms, None);
}
