//! An identity (id and first content) can outlive its record.

use crate::trial::*;
use sprag::{
    Codec, State, StoreError, Unique, When,
    model::{EnvelopeBuilder, Replace},
    store::Operation,
};

cases! {
    a_completed_job_is_remembered,
    an_evicted_job_is_remembered,
    a_deleted_job_is_remembered,
    a_kept_job_tells_its_state,
    it_is_remembered_to_the_millisecond,
    remembering_begins_when_the_record_goes,
    a_job_that_does_not_ask_for_it_is_not_remembered,
    other_content_is_a_conflict,
    a_remembered_job_is_not_found,
    a_remembered_job_is_written_and_counted_nowhere,
    nothing_else_is_judged,
    a_remembered_job_is_no_offence_in_an_atomic_batch,
    a_conflict_with_a_remembered_job_is_an_offence,
    the_first_content_is_remembered,
    the_first_content_is_the_jobs_as_long_as_it_is_kept,
    a_new_job_of_a_forgotten_id_is_remembered_by_itself,
    the_remembered_id_of_one_queue_is_free_in_another,
}

fn a(t: &Trial) -> EnvelopeBuilder {
    t.named("a").remember(HOUR)
}

/// The job was enqueued, run, and is gone.
async fn run(t: &Trial, job: EnvelopeBuilder) {
    t.enqueue(job).await;
    t.complete(&t.claim_one().await).await.expect("completed");
}

fn gone() -> Result<sprag::Enqueued, StoreError> {
    existing(&id("a"), None)
}

async fn a_completed_job_is_remembered(t: Trial) {
    run(&t, a(&t)).await;
    assert_eq!(t.offer(a(&t)).await, gone());
    assert_eq!(t.offer(t.named("a")).await, gone(), "whoever asks");
    assert_eq!(t.claim(1).await, []);
}

async fn an_evicted_job_is_remembered(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        t.job_in(state, a(&t)).await;
        assert_eq!(t.sweep_after(90 * DAY).await.evicted, 1);
        assert_eq!(t.offer(t.named("a")).await, gone(), "{state}");
    }
}

async fn a_deleted_job_is_remembered(t: Trial) {
    let all = UNFINISHED.into_iter().chain(ENDED);
    for state in all.filter(|state| *state != State::Active) {
        let t = t.other_queue().await;
        let job = t.job_in(state, a(&t)).await;
        t.operate(Operation::Delete, &job).await.expect("deleted");
        assert_eq!(t.offer(t.named("a")).await, gone(), "{state}");
    }
}

async fn a_kept_job_tells_its_state(t: Trial) {
    for state in UNFINISHED.into_iter().chain(ENDED) {
        let t = t.other_queue().await;
        let job = t.job_in(state, a(&t)).await;
        assert_eq!(t.offer(a(&t)).await, existing(&job, Some(state)));
    }
}

async fn it_is_remembered_to_the_millisecond(t: Trial) {
    for remember in [ms(1), ms(800), ms(1_999)] {
        run(&t, t.named("a").remember(remember)).await;
        t.advance(remember - ms(1)).await;
        t.sweep().await;
        assert_eq!(t.offer(t.named("a")).await, gone());
        t.advance(ms(1)).await;
        run(&t, t.named("a")).await;
    }
}

async fn remembering_begins_when_the_record_goes(t: Trial) {
    t.enqueue(a(&t).retention(DAY)).await;
    t.advance(2 * HOUR).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    t.advance(DAY + HOUR).await;
    assert_eq!(t.offer(a(&t)).await, existing(&id("a"), Some(State::Completed)));
    t.sweep().await;
    t.advance(HOUR - ms(1)).await;
    assert_eq!(t.offer(a(&t)).await, gone());
    t.advance(ms(1)).await;
    t.enqueue(a(&t)).await;
}

async fn a_job_that_does_not_ask_for_it_is_not_remembered(t: Trial) {
    run(&t, t.named("a")).await;
    t.enqueue(t.named("a")).await;
}

async fn other_content_is_a_conflict(t: Trial) {
    run(&t, a(&t)).await;
    assert_eq!(t.offer(t.saying("other").id(id("a"))).await, Err(conflict(&id("a"))));
    t.sweep_after(HOUR).await;
    t.enqueue(t.saying("other").id(id("a"))).await;
}

async fn a_remembered_job_is_not_found(t: Trial) {
    run(&t, a(&t)).await;
    assert_eq!(t.find(&id("a")).await, Err(no_job(&id("a"))));
    for operation in Operation::ALL {
        assert_eq!(t.operate(operation, &id("a")).await, Err(no_job(&id("a"))));
    }
}

async fn a_remembered_job_is_written_and_counted_nowhere(t: Trial) {
    run(&t, a(&t)).await;
    t.token().await;
    let before = t.info().await;
    assert_eq!(t.offer(a(&t)).await, gone());
    assert_eq!(t.info().await, before);
    assert!(!t.token().await);
}

async fn nothing_else_is_judged(t: Trial) {
    run(&t, a(&t)).await;
    t.enqueue(t.saying("other").unique(Unique::key("k"))).await;
    t.quarantine(&build(a(&t)).fingerprint()).await;
    t.limit(0).await;
    let again = a(&t).unique(Unique::key("k")).deadline(When::Now);
    assert_eq!(t.offer(again).await, gone());
}

async fn a_remembered_job_is_no_offence_in_an_atomic_batch(t: Trial) {
    run(&t, a(&t)).await;
    let jobs = [t.named("b"), t.named("a")].map(build);
    let answer = t.store.enqueue_atomic(&t.queue, &jobs).await.expect("admitted");
    assert_eq!((answer[0].state, answer[1].state), (Some(State::Pending), None));
    assert_eq!((answer[0].existing, answer[1].existing), (false, true));
    assert_eq!(t.claim_ids().await, ["b"]);
}

async fn a_conflict_with_a_remembered_job_is_an_offence(t: Trial) {
    run(&t, a(&t)).await;
    let jobs = [t.named("b"), t.saying("other").id(id("a"))].map(build);
    let error = t.store.enqueue_atomic(&t.queue, &jobs).await.expect_err("refused");
    assert_eq!((error.index, error.error), (Some(1), conflict(&id("a"))));
    assert_eq!(t.claim(1).await, []);
}

/// A job "a" of the content "hello" that says "other" by now.
async fn replaced_a(t: &Trial) {
    let keyed = |job: EnvelopeBuilder| job.unique(Unique::key("k").replace([Replace::Payload]));
    t.enqueue(keyed(a(t))).await;
    assert_eq!(t.offer(keyed(t.saying("other"))).await, Err(replaced(&id("a"))));
}

async fn the_first_content_is_remembered(t: Trial) {
    replaced_a(&t).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(t.offer(t.named("a")).await, gone());
    assert_eq!(t.offer(t.saying("other").id(id("a"))).await, Err(conflict(&id("a"))));
}

async fn the_first_content_is_the_jobs_as_long_as_it_is_kept(t: Trial) {
    replaced_a(&t).await;
    let other = || t.saying("other").id(id("a"));
    assert_eq!(t.offer(t.named("a")).await, existing(&id("a"), Some(State::Pending)));
    assert_eq!(t.offer(other()).await, Err(conflict(&id("a"))));
    t.cancel(&id("a")).await.expect("cancelled");
    assert_eq!(t.offer(t.named("a")).await, existing(&id("a"), Some(State::Cancelled)));
    assert_eq!(t.offer(other()).await, Err(conflict(&id("a"))));
}

async fn a_new_job_of_a_forgotten_id_is_remembered_by_itself(t: Trial) {
    run(&t, a(&t)).await;
    t.advance(HOUR).await;
    let other = || t.named("a").payload("other", Codec::Raw);
    run(&t, other().remember(2 * HOUR)).await;
    t.sweep_after(HOUR).await;
    assert_eq!(t.offer(other()).await, gone());
    assert_eq!(t.offer(a(&t)).await, Err(conflict(&id("a"))));
}

async fn the_remembered_id_of_one_queue_is_free_in_another(t: Trial) {
    run(&t, a(&t)).await;
    let other = t.other_queue().await;
    other.enqueue(a(&other)).await;
}
