//! A unique key is held from the enqueue until its job is finished.

use crate::trial::*;
use sprag::{
    Codec, Kind, State, Unique, When,
    model::EnvelopeBuilder,
    store::{Operation, Setting},
};

cases! {
    a_held_key_refuses_and_names_its_holder_in_every_unfinished_state,
    a_key_is_free_in_every_finished_state,
    a_key_is_free_once_its_job_is_deleted,
    a_key_is_free_once_its_job_is_exhausted,
    a_key_is_free_once_its_job_is_evicted,
    a_key_is_free_once_its_job_has_expired,
    a_key_is_free_once_its_job_is_quarantined_by_a_crash,
    a_key_is_free_once_an_operator_has_ended_its_job,
    a_key_stays_held_over_a_retry_that_falls_due,
    a_key_stays_held_by_a_job_run_now,
    a_key_stays_held_over_a_snooze,
    a_key_stays_held_over_a_requeue,
    a_key_stays_held_over_a_crash,
    a_key_stays_held_while_its_job_is_active_again,
    a_job_that_had_the_key_frees_nothing_when_it_is_evicted,
    a_refused_job_leaves_nothing,
    a_key_belongs_to_its_kind,
    a_key_of_any_kind_is_shared_by_all_kinds,
    a_key_of_a_kind_is_not_the_key_of_any_kind,
    keys_that_look_alike_when_encoded_are_apart,
    a_key_by_payload_admits_one_job_per_content,
    a_key_of_one_queue_is_free_in_another,
}

fn keyed(t: &Trial, key: &str) -> EnvelopeBuilder {
    t.job().unique(Unique::key(key))
}

fn of_kind(t: &Trial, kind: &str, unique: Unique) -> EnvelopeBuilder {
    let kind = Kind::new(kind).expect("kind");
    sprag::Envelope::builder(t.queue.clone(), kind).unique(unique)
}

async fn assert_held(t: &Trial, holder: &sprag::JobId) {
    assert_eq!(t.offer(other(t)).await, Err(duplicate(holder)));
}

/// Another content: that of the first may be quarantined.
fn other(t: &Trial) -> EnvelopeBuilder {
    t.saying("other").unique(Unique::key("k"))
}

async fn a_held_key_refuses_and_names_its_holder_in_every_unfinished_state(t: Trial) {
    for state in UNFINISHED {
        let t = t.other_queue().await;
        let holder = t.job_in(state, keyed(&t, "k")).await;
        assert_held(&t, &holder).await;
        assert_eq!(t.state(&holder).await, state);
    }
}

async fn a_key_is_free_in_every_finished_state(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        t.job_in(state, keyed(&t, "k")).await;
        let next = t.enqueue(other(&t)).await;
        assert_held(&t, &next).await;
    }
}

async fn a_key_is_free_once_its_job_is_deleted(t: Trial) {
    t.enqueue(keyed(&t, "k")).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    t.enqueue(keyed(&t, "k")).await;
}

async fn a_key_is_free_once_its_job_is_exhausted(t: Trial) {
    t.enqueue(keyed(&t, "k").max_attempts(1)).await;
    let state = t.retry(&t.claim_one().await, HOUR).await;
    assert_eq!(state, Ok(State::Archived));
    t.enqueue(keyed(&t, "k")).await;
}

async fn a_key_is_free_once_its_job_is_evicted(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        t.job_in(state, keyed(&t, "k")).await;
        assert_eq!(t.sweep_after(91 * DAY).await.evicted, 1, "{state}");
        t.enqueue(other(&t)).await;
    }
}

async fn a_key_is_free_once_its_job_has_expired(t: Trial) {
    let until = || keyed(&t, "k").deadline(When::In(LEASE));
    t.enqueue(until()).await;
    t.advance(LEASE).await;
    assert_eq!(t.claim(1).await, [], "seen by a claim");
    t.enqueue(until()).await;
    assert_eq!(t.sweep_after(LEASE).await.expired, 1, "by a sweep");
    t.enqueue(until()).await;
    let state = t.retry(&t.claim_one().await, LEASE).await;
    assert_eq!(state, Ok(State::Archived), "by a retry");
    t.enqueue(until()).await;
    t.claim_one().await;
    assert_eq!(t.vanish().await.expired, 1, "by a reclaim");
    t.enqueue(until()).await;
}

async fn a_key_is_free_once_its_job_is_quarantined_by_a_crash(t: Trial) {
    t.set(Setting::CrashLimit(Some(1))).await;
    t.job_in(State::Active, keyed(&t, "k")).await;
    assert_eq!(t.vanish().await.quarantined, 1);
    let next = t.enqueue(other(&t)).await;
    assert_held(&t, &next).await;
}

async fn a_key_is_free_once_an_operator_has_ended_its_job(t: Trial) {
    for operation in [Operation::Cancel, Operation::Archive] {
        for state in UNFINISHED {
            let t = t.other_queue().await;
            let job = t.job_in(state, keyed(&t, "k")).await;
            t.operate(operation, &job).await.expect("ended");
            t.enqueue(keyed(&t, "k")).await;
        }
    }
}

async fn a_key_stays_held_by_a_job_run_now(t: Trial) {
    for state in [State::Scheduled, State::Retry] {
        let t = t.other_queue().await;
        let holder = t.job_in(state, keyed(&t, "k")).await;
        t.operate(Operation::Run, &holder).await.expect("pending");
        assert_held(&t, &holder).await;
        t.claim_one().await;
        assert_held(&t, &holder).await;
    }
}

async fn a_key_stays_held_over_a_retry_that_falls_due(t: Trial) {
    let holder = t.job_in(State::Retry, keyed(&t, "k")).await;
    t.sweep_after(HOUR).await;
    assert_eq!(t.state(&holder).await, State::Pending);
    assert_held(&t, &holder).await;
}

async fn a_key_stays_held_over_a_snooze(t: Trial) {
    let holder = t.enqueue(keyed(&t, "k")).await;
    t.snooze(&t.claim_one().await, HOUR).await.expect("snoozed");
    assert_held(&t, &holder).await;
    t.sweep_after(HOUR).await;
    assert_held(&t, &holder).await;
}

async fn a_key_stays_held_over_a_requeue(t: Trial) {
    let holder = t.enqueue(keyed(&t, "k")).await;
    t.requeue(&t.claim_one().await).await.expect("requeued");
    assert_held(&t, &holder).await;
}

async fn a_key_stays_held_over_a_crash(t: Trial) {
    let holder = t.job_in(State::Active, keyed(&t, "k")).await;
    t.vanish().await;
    assert_held(&t, &holder).await;
    t.claim_one().await;
    t.vanish().await;
    assert_eq!(t.state(&holder).await, State::Retry);
    assert_held(&t, &holder).await;
}

async fn a_key_stays_held_while_its_job_is_active_again(t: Trial) {
    let holder = t.job_in(State::Active, keyed(&t, "k")).await;
    t.vanish().await;
    t.claim_one().await;
    assert_held(&t, &holder).await;
}

async fn a_job_that_had_the_key_frees_nothing_when_it_is_evicted(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        t.job_in(state, keyed(&t, "k")).await;
        let holder = t.enqueue(other(&t)).await;
        assert_eq!(t.sweep_after(91 * DAY).await.evicted, 1, "{state}");
        assert_held(&t, &holder).await;
    }
}

async fn a_refused_job_leaves_nothing(t: Trial) {
    t.enqueue(t.named("a").unique(Unique::key("k"))).await;
    let answer = t.offer(t.named("b").unique(Unique::key("k"))).await;
    assert_eq!(answer, Err(duplicate(&id("a"))));
    assert_eq!(t.find(&id("b")).await, Err(no_job(&id("b"))));
    assert_eq!(t.info().await.unfinished, 1);
    assert_eq!(t.claim_ids().await, ["a"]);
}

async fn a_key_belongs_to_its_kind(t: Trial) {
    let one = t.enqueue(of_kind(&t, "one", Unique::key("k"))).await;
    t.enqueue(of_kind(&t, "two", Unique::key("k"))).await;
    assert_eq!(t.offer(of_kind(&t, "one", Unique::key("k"))).await, Err(duplicate(&one)));
}

async fn a_key_of_any_kind_is_shared_by_all_kinds(t: Trial) {
    let one = t.enqueue(of_kind(&t, "one", Unique::key("k").any_kind())).await;
    let two = of_kind(&t, "two", Unique::key("k").any_kind());
    assert_eq!(t.offer(two).await, Err(duplicate(&one)));
}

async fn a_key_of_a_kind_is_not_the_key_of_any_kind(t: Trial) {
    t.enqueue(of_kind(&t, "one", Unique::key("k"))).await;
    t.enqueue(of_kind(&t, "one", Unique::key("k").any_kind())).await;
}

async fn keys_that_look_alike_when_encoded_are_apart(t: Trial) {
    for key in ["~", "%7E", "%7e", "%257E", " "] {
        t.enqueue(keyed(&t, key)).await;
    }
    t.enqueue(of_kind(&t, "a", Unique::key("b~c"))).await;
    t.enqueue(of_kind(&t, "a", Unique::key("a~b~c").any_kind())).await;
    assert_eq!(t.info().await.pending, 7);
}

async fn a_key_by_payload_admits_one_job_per_content(t: Trial) {
    let first = t.enqueue(t.job().unique(Unique::by_payload())).await;
    assert_eq!(t.offer(t.job().unique(Unique::by_payload())).await, Err(duplicate(&first)));
    t.enqueue(t.job().payload("other", Codec::Raw).unique(Unique::by_payload())).await;
    t.enqueue(t.job()).await;
}

async fn a_key_of_one_queue_is_free_in_another(t: Trial) {
    t.enqueue(keyed(&t, "k")).await;
    let other = t.other_queue().await;
    other.enqueue(keyed(&other, "k")).await;
}
