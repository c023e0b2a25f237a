//! What went wrong once.

use crate::{
    jobs::{At, Holds, Job, Key, PLAIN},
    pair::Rig,
    steps::{Call, Pick, Set, Step},
};
use sprag::{
    State,
    model::Replace::{self, Payload},
    store::Operation,
};

const HOUR: u64 = 3_600_000;

async fn equal(calls: impl IntoIterator<Item = Call>) {
    let steps: Vec<Step> = calls.into_iter().map(|call| Step { call, lost: None }).collect();
    if let Err(why) = Rig::start().await.run(&steps).await {
        panic!("{why}");
    }
}

fn job(id: u8) -> Job {
    Job { id, ..PLAIN }
}

fn enqueue(job: Job) -> Call {
    Call::Enqueue(vec![job])
}

fn claim(count: usize) -> Call {
    Call::Claim { worker: 0, count, lease: 500 }
}

fn key(holds: Holds, replace: impl Into<Vec<Replace>>) -> Option<Key> {
    Some(Key { name: Some(1), holds, any_kind: false, replace: replace.into() })
}

const SWEEP: Call = Call::Sweep { now: true, seed: 0 };

#[tokio::test]
async fn a_claim_that_hands_over_nothing_has_no_fence() {
    let closed = Call::Quarantine(PLAIN.content, None);
    let other = Job { content: (0, 2), ..job(1) };
    equal([enqueue(job(0)), closed, claim(1), enqueue(other), claim(1)]).await;
}

#[tokio::test]
async fn a_replaced_payload_leaves_no_unknown_field() {
    let first = Job { content: (0, 2), key: key(Holds::Lifecycle, []), ..job(0) };
    let second = Job { key: key(Holds::Lifecycle, [Payload]), ..job(1) };
    equal([enqueue(first), enqueue(second)]).await;
}

#[tokio::test]
async fn of_a_setting_given_twice_the_last_holds() {
    equal([Call::Set(vec![Set::Paused(true), Set::Paused(false)])]).await;
}

#[tokio::test]
async fn the_retention_of_completed_jobs_is_that_of_the_end() {
    let set = Call::Set(vec![Set::Retention(State::Completed, Some(1))]);
    equal([enqueue(job(0)), claim(1), set, Call::Complete(vec![Pick::Held(0)], None)]).await;
}

#[tokio::test]
async fn jobs_due_at_one_moment_are_promoted_by_id() {
    let later = Job { due: At::In(HOUR), ..job(1) };
    let failed = Call::Retry(vec![Pick::Held(0)], HOUR);
    equal([
        enqueue(job(0)),
        claim(1),
        failed,
        enqueue(later),
        Call::Advance(HOUR),
        SWEEP,
        claim(2),
    ])
    .await;
}

#[tokio::test]
async fn a_job_moved_by_a_batch_stands_behind_the_batchs_earlier_jobs() {
    let first = Job { priority: 0, key: key(Holds::Lifecycle, []), ..job(0) };
    let moves = Job { key: key(Holds::Lifecycle, [Replace::Priority]), ..job(2) };
    equal([enqueue(first), Call::Enqueue(vec![job(1), moves]), claim(2)]).await;
}

#[tokio::test]
async fn a_crash_past_the_deadline_closes_the_fingerprint_at_the_limit() {
    let set = Call::Set(vec![Set::CrashLimit(Some(1))]);
    let short = Job { deadline: Some(At::In(1)), ..job(0) };
    equal([set, enqueue(short), claim(1), Call::Advance(HOUR), SWEEP]).await;
}

#[tokio::test]
async fn a_job_snoozed_past_its_deadline_expires_at_the_next_sweep() {
    let waits = [Call::Snooze(vec![Pick::Held(0)], HOUR), Call::Requeue(vec![Pick::Held(0)])];
    for again in waits {
        let short = Job { deadline: Some(At::In(1)), ..job(0) };
        equal([enqueue(short), claim(1), Call::Advance(1), SWEEP, again, SWEEP]).await;
    }
}

#[tokio::test]
async fn a_job_with_a_ghost_is_on_one_of_the_pages() {
    let all = Call::Operate(Operation::Cancel, vec![0]);
    let again = Call::Operate(Operation::Rerun, vec![0]);
    let pages = Call::List { state: State::Pending, kind: None, limit: 1 };
    equal([enqueue(job(0)), all, enqueue(job(1)), again, pages]).await;
}

#[tokio::test]
async fn an_entry_run_to_the_front_and_deleted_is_skipped_and_counted_for_nothing() {
    let delete = || Call::Operate(Operation::Delete, vec![0]);
    let later = Job { due: At::In(HOUR), ..job(0) };
    let run = Call::Operate(Operation::Run, vec![0]);
    equal([enqueue(job(0)), delete(), enqueue(later), run, delete(), enqueue(job(1)), claim(1)])
        .await;
}

#[tokio::test]
async fn a_release_begins_the_crashes_anew_also_of_a_job_whose_key_is_taken() {
    let keyed = |id| Job { key: key(Holds::Lifecycle, []), ..job(id) };
    let closed = Job { content: (0, 2), ..keyed(0) };
    equal([
        enqueue(closed),
        enqueue(Job { content: (0, 2), ..job(2) }),
        claim(2),
        Call::Quarantine((0, 2), None),
        Call::Advance(500),
        SWEEP,
        enqueue(keyed(1)),
        Call::Release((0, 2)),
    ])
    .await;
}
