//! A batch of which each job is judged by itself, in order.

use crate::trial::*;
use sprag::{Codec, Enqueued, State, StoreError, Unique, When};

cases! {
    an_empty_batch_is_an_empty_answer,
    a_batch_keeps_its_order,
    a_batch_sees_its_own_earlier_ids,
    a_batch_sees_its_own_earlier_conflict,
    a_batch_sees_its_own_earlier_keys,
    a_refused_job_holds_no_key_against_the_rest,
    a_batch_is_admitted_one_by_one_up_to_the_limit,
    existing_jobs_in_a_batch_use_up_no_limit,
    each_of_a_thousand_has_its_own_outcome,
    a_job_of_another_queue_is_refused,
}

async fn an_empty_batch_is_an_empty_answer(t: Trial) {
    assert_eq!(t.offer_all(&[]).await, []);
    assert!(t.store.queue(&t.queue).await.is_err(), "it makes no queue");
}

async fn a_batch_keeps_its_order(t: Trial) {
    let jobs = ["a", "b", "c"].map(|name| build(t.named(name)));
    t.offer_all(&jobs).await;
    assert_eq!(t.claim_ids().await, ["a", "b", "c"]);
}

async fn a_batch_sees_its_own_earlier_ids(t: Trial) {
    let jobs = [t.named("a").run_at(When::In(HOUR)), t.named("a")].map(build);
    let outcome = |existing| Ok(Enqueued { id: id("a"), state: Some(State::Scheduled), existing });
    assert_eq!(t.offer_all(&jobs).await, [outcome(false), outcome(true)]);
    assert_eq!(t.info().await.unfinished, 1);
}

async fn a_batch_sees_its_own_earlier_conflict(t: Trial) {
    let jobs = [t.named("a"), t.named("a").payload("other", Codec::Raw)].map(build);
    assert_eq!(t.offer_all(&jobs).await[1], Err(conflict(&id("a"))));
    assert_eq!(t.info().await.unfinished, 1);
}

async fn a_batch_sees_its_own_earlier_keys(t: Trial) {
    let jobs = ["a", "b"].map(|name| build(t.named(name).unique(Unique::key("k"))));
    assert_eq!(t.offer_all(&jobs).await[1], Err(duplicate(&id("a"))));
    assert_eq!(t.claim_ids().await, ["a"]);
}

async fn a_refused_job_holds_no_key_against_the_rest(t: Trial) {
    let one = |name| t.named(name).unique(Unique::key("one"));
    t.enqueue(t.named("conflict")).await;
    let jobs = [one("conflict").payload("other", Codec::Raw), one("b")].map(build);
    let outcomes = t.offer_all(&jobs).await;
    assert_eq!(outcomes[0], Err(conflict(&id("conflict"))));
    assert!(outcomes[1].is_ok(), "{outcomes:?}");
}

async fn a_batch_is_admitted_one_by_one_up_to_the_limit(t: Trial) {
    t.limit(3).await;
    t.enqueue(t.job()).await;
    let outcomes = t.offer_all(&t.jobs(4)).await;
    let full =
        StoreError::Backpressure { queue: t.queue.to_string(), limit: 3, current: 3, incoming: 1 };
    assert!(outcomes[0].is_ok() && outcomes[1].is_ok());
    assert_eq!(outcomes[2..], [Err(full.clone()), Err(full)]);
    assert_eq!(t.info().await.unfinished, 3);
}

async fn existing_jobs_in_a_batch_use_up_no_limit(t: Trial) {
    t.limit(2).await;
    t.enqueue(t.named("a")).await;
    let jobs = ["a", "a", "b", "a"].map(|name| build(t.named(name)));
    let existing: Vec<bool> =
        t.offer_all(&jobs).await.into_iter().map(|job| job.expect("fits").existing).collect();
    assert_eq!(existing, [true, true, false, true]);
}

async fn each_of_a_thousand_has_its_own_outcome(t: Trial) {
    let mut jobs: Vec<_> = (0..1_000).map(|n| build(t.named(&format!("job-{n}")))).collect();
    jobs[10] = build(t.named("first").unique(Unique::key("k")));
    for at in [11, 500, 999] {
        jobs[at] = build(t.job().unique(Unique::key("k")));
    }
    let other = t.other_queue().await;
    jobs[700] = build(other.job());
    let text = format!("queue: {}; must be {}, as the call's", other.queue, t.queue);
    for (at, outcome) in t.offer_all(&jobs).await.into_iter().enumerate() {
        match at {
            11 | 500 | 999 => assert_eq!(outcome, Err(duplicate(&id("first"))), "{at}"),
            700 => assert_eq!(outcome, Err(invalid(&text))),
            _ => {
                let (id, state) = (jobs[at].id().clone(), Some(State::Pending));
                assert_eq!(outcome, Ok(Enqueued { id, state, existing: false }), "{at}");
            }
        }
    }
    assert_eq!(t.info().await.unfinished, 996);
}

async fn a_job_of_another_queue_is_refused(t: Trial) {
    let other = t.other_queue().await;
    let outcomes = t.offer_all(&[build(other.job()), build(t.named("a"))]).await;
    let text = format!("queue: {}; must be {}, as the call's", other.queue, t.queue);
    assert_eq!(outcomes[0], Err(invalid(&text)));
    assert_eq!(t.claim_ids().await, ["a"]);
    assert!(t.store.queue(&other.queue).await.is_err());
}
