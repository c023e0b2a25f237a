//! A batch of which all jobs are written, or none.

use crate::trial::*;
use sprag::{Codec, Enqueued, Envelope, State, StoreError, Unique, When, store::BatchError};

cases! {
    an_empty_atomic_batch_is_an_empty_answer,
    a_good_batch_is_written_whole_and_in_order,
    existing_jobs_are_no_offence,
    a_batch_of_existing_jobs_passes_a_lowered_limit,
    a_duplicate_writes_nothing_and_is_named,
    a_duplicate_of_the_batchs_own_is_named,
    a_conflict_writes_nothing_and_is_named,
    a_conflict_of_the_batchs_own_is_named,
    the_first_offender_is_named,
    a_refused_batch_holds_no_key_and_no_id,
    a_refused_batch_wakes_nobody,
    backpressure_counts_all_that_would_be_written,
    backpressure_does_not_count_existing_jobs,
    a_batch_that_just_fits_is_admitted,
    an_offender_is_judged_before_backpressure,
    a_thousand_with_duplicates_writes_nothing,
    an_atomic_batch_wakes,
}

async fn atomic(t: &Trial, jobs: &[Envelope]) -> Result<Vec<Enqueued>, BatchError> {
    t.store.enqueue_atomic(&t.queue, jobs).await
}

fn at(index: usize, error: StoreError) -> Result<Vec<Enqueued>, BatchError> {
    Err(BatchError { index: Some(index), error })
}

fn enqueued(name: &str, state: State, existing: bool) -> Enqueued {
    Enqueued { id: id(name), state: Some(state), existing }
}

async fn an_empty_atomic_batch_is_an_empty_answer(t: Trial) {
    assert_eq!(atomic(&t, &[]).await, Ok(Vec::new()));
    assert!(t.store.queue(&t.queue).await.is_err(), "it makes no queue");
}

async fn a_good_batch_is_written_whole_and_in_order(t: Trial) {
    let jobs = [t.named("a"), t.named("b").run_at(When::In(HOUR)), t.named("c")].map(build);
    let expected = [
        enqueued("a", State::Pending, false),
        enqueued("b", State::Scheduled, false),
        enqueued("c", State::Pending, false),
    ];
    assert_eq!(atomic(&t, &jobs).await, Ok(expected.to_vec()));
    assert_eq!(t.info().await.unfinished, 3);
    assert_eq!(t.claim_ids().await, ["a", "c"]);
}

async fn existing_jobs_are_no_offence(t: Trial) {
    t.job_in(State::Cancelled, t.named("old")).await;
    let jobs = [t.named("old"), t.named("new").run_at(When::In(HOUR)), t.named("new")].map(build);
    let expected = [
        enqueued("old", State::Cancelled, true),
        enqueued("new", State::Scheduled, false),
        enqueued("new", State::Scheduled, true),
    ];
    assert_eq!(atomic(&t, &jobs).await, Ok(expected.to_vec()));
    assert_eq!(t.info().await.unfinished, 1);
}

async fn a_batch_of_existing_jobs_passes_a_lowered_limit(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    t.limit(1).await;
    let jobs = ["a", "b"].map(|name| build(t.named(name)));
    assert!(atomic(&t, &jobs).await.is_ok());
}

async fn a_duplicate_writes_nothing_and_is_named(t: Trial) {
    t.enqueue(t.named("holder").unique(Unique::key("k"))).await;
    let jobs = [t.job(), t.job().unique(Unique::key("k")), t.job()].map(build);
    assert_eq!(atomic(&t, &jobs).await, at(1, duplicate(&id("holder"))));
    assert_eq!(t.claim_ids().await, ["holder"]);
}

async fn a_duplicate_of_the_batchs_own_is_named(t: Trial) {
    let keyed = |name| build(t.named(name).unique(Unique::key("k")));
    assert_eq!(atomic(&t, &[keyed("a"), keyed("b")]).await, at(1, duplicate(&id("a"))));
    assert!(t.store.queue(&t.queue).await.is_err(), "nothing is written");
}

async fn a_conflict_writes_nothing_and_is_named(t: Trial) {
    t.enqueue(t.named("a")).await;
    let jobs = [t.job(), t.job(), t.named("a").payload("other", Codec::Raw)].map(build);
    assert_eq!(atomic(&t, &jobs).await, at(2, conflict(&id("a"))));
    assert_eq!(t.claim_ids().await, ["a"]);
}

async fn a_conflict_of_the_batchs_own_is_named(t: Trial) {
    let jobs = [t.named("a"), t.named("a").payload("other", Codec::Raw)].map(build);
    assert_eq!(atomic(&t, &jobs).await, at(1, conflict(&id("a"))));
    assert!(t.store.queue(&t.queue).await.is_err(), "nothing is written");
}

async fn the_first_offender_is_named(t: Trial) {
    t.enqueue(t.named("a").unique(Unique::key("k"))).await;
    let other = t.named("a").payload("other", Codec::Raw);
    let jobs = [t.job(), t.job().unique(Unique::key("k")), other].map(build);
    assert_eq!(atomic(&t, &jobs).await, at(1, duplicate(&id("a"))));
}

async fn a_refused_batch_holds_no_key_and_no_id(t: Trial) {
    let jobs = [
        t.named("a").unique(Unique::key("k")),
        t.named("b"),
        t.named("b").payload("other", Codec::Raw),
    ];
    assert!(atomic(&t, &jobs.map(build)).await.is_err());
    t.enqueue(t.named("c").unique(Unique::key("k"))).await;
    t.enqueue(t.named("a").payload("other", Codec::Raw)).await;
}

async fn a_refused_batch_wakes_nobody(t: Trial) {
    let jobs = [t.named("a"), t.named("a").payload("other", Codec::Raw)].map(build);
    assert!(atomic(&t, &jobs).await.is_err());
    assert!(!t.token().await);
}

fn full(t: &Trial, limit: u64, current: u64, incoming: u64) -> BatchError {
    let queue = t.queue.to_string();
    BatchError { index: None, error: StoreError::Backpressure { queue, limit, current, incoming } }
}

async fn backpressure_counts_all_that_would_be_written(t: Trial) {
    t.limit(5).await;
    t.enqueue_named(&["a", "b", "c"]).await;
    assert_eq!(atomic(&t, &t.jobs(3)).await, Err(full(&t, 5, 3, 3)));
    assert_eq!(t.info().await.unfinished, 3);
}

async fn backpressure_does_not_count_existing_jobs(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    t.limit(3).await;
    let jobs = ["a", "c", "b", "d", "d"].map(|name| build(t.named(name)));
    assert_eq!(atomic(&t, &jobs).await, Err(full(&t, 3, 2, 2)));
    t.limit(4).await;
    assert!(atomic(&t, &jobs).await.is_ok());
    assert_eq!(t.info().await.unfinished, 4);
}

async fn a_batch_that_just_fits_is_admitted(t: Trial) {
    t.limit(3).await;
    assert!(atomic(&t, &t.jobs(3)).await.is_ok());
    assert_eq!(atomic(&t, &t.jobs(1)).await, Err(full(&t, 3, 3, 1)));
}

async fn an_offender_is_judged_before_backpressure(t: Trial) {
    t.limit(1).await;
    t.enqueue(t.named("a").unique(Unique::key("k"))).await;
    let jobs = [t.job(), t.job().unique(Unique::key("k"))].map(build);
    assert_eq!(atomic(&t, &jobs).await, at(1, duplicate(&id("a"))));
}

async fn a_thousand_with_duplicates_writes_nothing(t: Trial) {
    let mut jobs = t.jobs(1_000);
    jobs[10] = build(t.named("first").unique(Unique::key("k")));
    for at in [500, 998, 999] {
        jobs[at] = build(t.job().unique(Unique::key("k")));
    }
    assert_eq!(atomic(&t, &jobs).await, at(500, duplicate(&id("first"))));
    let other = t.other_queue().await;
    jobs[700] = build(other.job());
    let text = format!("queue: {}; must be {}, as the call's", other.queue, t.queue);
    assert_eq!(atomic(&t, &jobs).await, at(700, invalid(&text)), "the boundary comes first");
    assert!(t.store.queue(&t.queue).await.is_err(), "nothing is written");
}

async fn an_atomic_batch_wakes(t: Trial) {
    atomic(&t, &t.jobs(2)).await.expect("admitted");
    assert!(t.token().await);
    assert!(!t.token().await, "one token at most");
}
