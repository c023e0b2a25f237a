//! A job that leaves its lane and comes back, again and again: it runs once, in its turn, and counts
//! once, whatever it left behind.

use crate::trial::*;
use sprag::{
    JobId, State, Unique, When,
    model::{EnvelopeBuilder, Replace},
    store::{Change, EndingReason, Operation},
};

cases! {
    a_job_run_again_and_again_is_quarantined_released_and_claimed,
    a_job_run_and_moved_to_another_lane_and_back_is_claimed,
    an_id_used_again_after_its_job_was_run_and_deleted_is_claimed,
    a_job_run_again_and_again_expires_once,
    a_job_run_again_and_again_is_cancelled_once,
    a_job_run_and_moved_to_a_lower_lane_waits_for_the_others,
    a_job_run_cancelled_and_rerun_stands_at_the_back,
    a_new_job_of_an_id_that_was_run_and_deleted_stands_at_the_back,
    a_requeued_job_stands_before_what_it_left_behind,
    a_reclaimed_job_stands_behind_what_it_left_behind,
    a_job_run_again_and_again_is_listed_once,
    a_cursor_does_not_grow_with_what_was_cancelled,
    a_thousand_cancelled_and_rerun_are_claimed_in_order,
    the_oldest_job_behind_three_thousand_cancelled_ones_is_seen,
}

fn key() -> Unique {
    Unique::key("u")
}

fn x(t: &Trial) -> EnvelopeBuilder {
    t.named("x").unique(key())
}

/// A duplicate replaces the field in `x`.
async fn replace(t: &Trial, by: EnvelopeBuilder, field: Replace) {
    let by = t.offer(by.unique(key().replace([field]))).await;
    assert_eq!(by, Err(replaced(&id("x"))));
}

async fn move_to_lane(t: &Trial, priority: u8) {
    replace(t, t.job().priority(priority), Replace::Priority).await;
}

async fn operate(t: &Trial, operation: Operation, name: &str) {
    assert_eq!(t.operate(operation, &id(name)).await, Ok(Change::Changed));
}

/// Out of its lane, and back to the front.
async fn leave_and_run(t: &Trial) {
    replace(t, t.job().run_at(When::In(HOUR)), Replace::RunAt).await;
    operate(t, Operation::Run, "x").await;
}

async fn assert_nothing_is_left(t: &Trial) {
    assert_eq!(t.claim(10).await, []);
    let info = t.info().await;
    assert_eq!((info.pending, info.oldest_pending_ms), (0, None));
    assert_eq!(info.unfinished, info.active);
}

async fn a_job_run_again_and_again_is_quarantined_released_and_claimed(t: Trial) {
    t.enqueue(x(&t)).await;
    leave_and_run(&t).await;
    leave_and_run(&t).await;
    let fingerprint = t.fingerprint(&id("x")).await;
    t.quarantine(&fingerprint).await;
    assert_nothing_is_left(&t).await;
    assert_eq!(t.state(&id("x")).await, State::Quarantined);
    assert_eq!(t.release(&fingerprint).await.released, 1);
    assert_eq!(t.claim_ids().await, ["x"]);
    assert_nothing_is_left(&t).await;
}

async fn a_job_run_and_moved_to_another_lane_and_back_is_claimed(t: Trial) {
    t.enqueue(x(&t)).await;
    leave_and_run(&t).await;
    move_to_lane(&t, 0).await;
    let held = t.claim_one().await;
    assert_nothing_is_left(&t).await;
    t.retry(&held, ms(1)).await.expect("retried");
    t.sweep_after(ms(1)).await;
    move_to_lane(&t, 4).await;
    assert_eq!(t.claim_ids().await, ["x"]);
    assert_nothing_is_left(&t).await;
}

async fn an_id_used_again_after_its_job_was_run_and_deleted_is_claimed(t: Trial) {
    t.enqueue_named(&["x"]).await;
    operate(&t, Operation::Delete, "x").await;
    t.enqueue(t.named("x").run_at(When::In(HOUR))).await;
    operate(&t, Operation::Run, "x").await;
    operate(&t, Operation::Delete, "x").await;
    t.enqueue(t.named("x").priority(0)).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_nothing_is_left(&t).await;
    t.enqueue(t.saying("new").id(id("x"))).await;
    assert_eq!(t.claim_ids().await, ["x"]);
    assert_nothing_is_left(&t).await;
}

async fn a_job_run_again_and_again_expires_once(t: Trial) {
    t.enqueue(x(&t).deadline(When::In(2 * HOUR))).await;
    leave_and_run(&t).await;
    leave_and_run(&t).await;
    leave_and_run(&t).await;
    t.enqueue_named(&["next"]).await;
    t.advance(2 * HOUR).await;
    assert_eq!(t.claim_ids().await, ["next"]);
    assert_eq!(t.ending(&id("x")).await, EndingReason::Expired);
    assert_nothing_is_left(&t).await;
}

async fn a_job_run_again_and_again_is_cancelled_once(t: Trial) {
    t.enqueue(x(&t)).await;
    for _ in 0..3 {
        leave_and_run(&t).await;
        operate(&t, Operation::Cancel, "x").await;
        operate(&t, Operation::Rerun, "x").await;
    }
    operate(&t, Operation::Cancel, "x").await;
    assert_nothing_is_left(&t).await;
}

async fn a_job_run_and_moved_to_a_lower_lane_waits_for_the_others(t: Trial) {
    t.enqueue(x(&t)).await;
    leave_and_run(&t).await;
    move_to_lane(&t, 0).await;
    t.enqueue(t.named("y").priority(3)).await;
    assert_eq!(t.claim_ids().await, ["y", "x"]);
}

async fn a_job_run_cancelled_and_rerun_stands_at_the_back(t: Trial) {
    t.enqueue(x(&t)).await;
    leave_and_run(&t).await;
    operate(&t, Operation::Cancel, "x").await;
    t.enqueue_named(&["first"]).await;
    operate(&t, Operation::Rerun, "x").await;
    t.enqueue_named(&["last"]).await;
    assert_eq!(t.claim_ids().await, ["first", "x", "last"]);
}

async fn a_new_job_of_an_id_that_was_run_and_deleted_stands_at_the_back(t: Trial) {
    t.enqueue(x(&t)).await;
    leave_and_run(&t).await;
    operate(&t, Operation::Delete, "x").await;
    t.enqueue_named(&["first", "x", "last"]).await;
    assert_eq!(t.claim_ids().await, ["first", "x", "last"]);
}

async fn a_requeued_job_stands_before_what_it_left_behind(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    t.enqueue(x(&t)).await;
    leave_and_run(&t).await;
    let held = t.claim_one().await;
    assert_eq!(held.id, id("x"));
    t.requeue(&held).await.expect("requeued");
    assert_eq!(t.claim_ids().await, ["x", "a", "b"]);
    assert_nothing_is_left(&t).await;
}

async fn a_reclaimed_job_stands_behind_what_it_left_behind(t: Trial) {
    t.enqueue_named(&["a"]).await;
    t.enqueue(x(&t)).await;
    leave_and_run(&t).await;
    t.enqueue_named(&["b"]).await;
    assert_eq!(t.claim_one().await.id, id("x"));
    t.vanish().await;
    assert_eq!(t.claim_ids().await, ["a", "b", "x"]);
    assert_nothing_is_left(&t).await;
}

/// Pages of the pending jobs; the longest cursor.
async fn pages(t: &Trial, limit: usize) -> (Vec<JobId>, usize) {
    let (mut ids, mut cursor, mut longest) = (Vec::new(), None::<String>, 0);
    loop {
        let page = t.store.list(&t.queue, State::Pending, None, cursor.as_deref(), limit).await;
        let page = page.expect("list");
        ids.extend(page.jobs.into_iter().map(|job| job.id));
        cursor = page.cursor;
        let Some(cursor) = &cursor else { return (ids, longest) };
        longest = longest.max(cursor.len());
    }
}

async fn a_job_run_again_and_again_is_listed_once(t: Trial) {
    t.enqueue_named(&["a"]).await;
    t.enqueue(x(&t)).await;
    t.enqueue_named(&["b"]).await;
    leave_and_run(&t).await;
    leave_and_run(&t).await;
    for limit in [1, 2, 100] {
        assert_eq!(pages(&t, limit).await.0, ["x", "a", "b"].map(id));
    }
    move_to_lane(&t, 9).await;
    move_to_lane(&t, 4).await;
    assert_eq!(pages(&t, 1).await.0, ["a", "b", "x"].map(id));
    assert_eq!(t.claim_ids().await, ["a", "b", "x"]);
}

async fn operate_on_all(t: &Trial, operation: Operation, ids: &[JobId]) {
    for slice in ids.chunks(500) {
        let outcomes = t.store.operate(&t.queue, operation, slice).await.expect("operate");
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(Change::Changed)));
    }
}

/// So many pending jobs, all cancelled and run again.
async fn cancelled_and_rerun(t: &Trial, count: usize) -> Vec<JobId> {
    let jobs = t.jobs(count);
    t.offer_all(&jobs).await;
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id().clone()).collect();
    operate_on_all(t, Operation::Cancel, &ids).await;
    operate_on_all(t, Operation::Rerun, &ids).await;
    ids
}

async fn a_cursor_does_not_grow_with_what_was_cancelled(t: Trial) {
    let ids = cancelled_and_rerun(&t, 1_000).await;
    let (listed, longest) = pages(&t, 300).await;
    assert_eq!(listed, ids);
    assert!(longest <= 80, "a cursor of {longest} bytes");
}

async fn a_thousand_cancelled_and_rerun_are_claimed_in_order(t: Trial) {
    let ids = cancelled_and_rerun(&t, 1_000).await;
    assert_eq!(t.info().await.unfinished, 1_000);
    let claimed: Vec<JobId> = t.claim(1_000).await.into_iter().map(|job| job.id).collect();
    assert_eq!(claimed, ids);
    assert_nothing_is_left(&t).await;
}

async fn the_oldest_job_behind_three_thousand_cancelled_ones_is_seen(t: Trial) {
    for _ in 0..3 {
        let jobs = t.jobs(1_000);
        t.offer_all(&jobs).await;
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id().clone()).collect();
        operate_on_all(&t, Operation::Cancel, &ids).await;
    }
    t.enqueue_named(&["good"]).await;
    t.advance(secs(5)).await;
    t.enqueue_named(&["later"]).await;
    assert_eq!(t.info().await.oldest_pending_ms, Some(5_000));
}
