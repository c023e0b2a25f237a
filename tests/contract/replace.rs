//! A duplicate can write fields into the holder of its key, if that waits.

use crate::trial::*;
use sprag::{
    Envelope, Kind, State, Unique, When,
    model::{EnvelopeBuilder, Mode, Replace},
};

cases! {
    a_duplicate_that_asks_for_nothing_replaces_nothing,
    each_field_is_replaced_by_itself,
    all_fields_are_replaced_at_once,
    a_holder_is_open_in_every_waiting_state,
    a_running_holder_is_not_open,
    a_replaced_payload_runs,
    equal_fields_are_replaced_as_well,
    a_replaced_number_of_attempts_counts,
    a_holder_of_another_kind_is_not_open,
    a_throttle_holder_is_open_while_it_waits,
    a_stranger_under_the_id_of_a_throttle_holder_that_is_gone_is_not_open,
    the_key_stays_the_holders,
    a_replaced_payload_is_judged_by_its_own_fingerprint,
    a_quarantined_duplicate_replaces_nothing,
    a_batch_replaces_into_its_own_earlier_jobs,
    an_atomic_batch_replaces_nothing,
    a_full_queue_is_replaced_into,
    a_replaced_payload_wakes_nobody,
}

const ALL: [Replace; 4] =
    [Replace::Payload, Replace::RunAt, Replace::Priority, Replace::MaxAttempts];

fn keyed(job: EnvelopeBuilder) -> EnvelopeBuilder {
    job.unique(Unique::key("k"))
}

fn asking(job: EnvelopeBuilder, fields: impl Into<Vec<Replace>>) -> EnvelopeBuilder {
    job.unique(Unique::key("k").replace(fields))
}

/// A duplicate that differs in every field.
fn other(t: &Trial, fields: impl Into<Vec<Replace>>) -> EnvelopeBuilder {
    let job = t.saying("other").version(2).priority(9).max_attempts(2).run_at(When::In(2 * HOUR));
    asking(job, fields).header("never", "replaced").timeout(secs(1)).retention(DAY)
}

async fn a_duplicate_that_asks_for_nothing_replaces_nothing(t: Trial) {
    let holder = t.enqueue(keyed(t.job())).await;
    let before = t.show(&holder).await;
    assert_eq!(t.offer(other(&t, [])).await, Err(duplicate(&holder)));
    assert_eq!(t.show(&holder).await, before);
}

async fn each_field_is_replaced_by_itself(t: Trial) {
    for field in ALL {
        let t = t.other_queue().await;
        let holder = t.job_in(State::Scheduled, keyed(t.job())).await;
        let (before, by) = (t.envelope(&holder).await, build(other(&t, [field])));
        assert_eq!(t.offer_all(std::slice::from_ref(&by)).await, [Err(replaced(&holder))]);
        let now = t.envelope(&holder).await;
        let changed = [
            (now.payload(), now.version(), now.fingerprint())
                != (before.payload(), before.version(), before.fingerprint()),
            now.run_at() != before.run_at(),
            now.priority() != before.priority(),
            now.max_attempts() != before.max_attempts(),
        ];
        assert_eq!(changed, ALL.map(|other| other == field), "{field:?}");
        let kept = |job: &Envelope| (job.headers().len(), job.timeout(), job.retention());
        assert_eq!(kept(&now), (0, None, None));
    }
}

async fn all_fields_are_replaced_at_once(t: Trial) {
    let holder = t.enqueue(keyed(t.job())).await;
    let by = build(other(&t, ALL));
    assert_eq!(t.offer_all(std::slice::from_ref(&by)).await, [Err(replaced(&holder))]);
    let now = t.envelope(&holder).await;
    assert_eq!((now.payload(), now.fingerprint()), (by.payload(), by.fingerprint()));
    assert_eq!((now.version(), now.priority(), now.max_attempts()), (2, 9, 2));
    assert_eq!(now.run_at(), When::At(t.now().await + 2 * HOUR));
    assert_eq!(t.due_in(&holder).await, 2 * HOUR);
    assert_eq!(t.info().await.unfinished, 1);
}

async fn a_holder_is_open_in_every_waiting_state(t: Trial) {
    for state in [State::Pending, State::Scheduled, State::Retry] {
        let t = t.other_queue().await;
        let holder = t.job_in(state, keyed(t.job())).await;
        let fields = [Replace::Payload, Replace::MaxAttempts];
        assert_eq!(t.offer(other(&t, fields)).await, Err(replaced(&holder)));
        let now = t.envelope(&holder).await;
        assert_eq!((now.payload().as_ref(), now.max_attempts()), (&b"other"[..], 2));
        assert_eq!(t.state(&holder).await, state);
    }
}

async fn a_running_holder_is_not_open(t: Trial) {
    let holder = t.job_in(State::Active, keyed(t.job())).await;
    let before = t.show(&holder).await;
    assert_eq!(t.offer(other(&t, ALL)).await, Err(duplicate(&holder)));
    assert_eq!(t.show(&holder).await, before);
}

async fn a_replaced_payload_runs(t: Trial) {
    let holder = t.enqueue(keyed(t.job())).await;
    t.offer(asking(t.saying("new"), [Replace::Payload])).await.expect_err("replaced");
    let claimed = t.claim(10).await;
    assert_eq!((claimed.len(), &claimed[0].id), (1, &holder));
    assert_eq!(claimed[0].envelope.payload(), "new");
}

async fn equal_fields_are_replaced_as_well(t: Trial) {
    let holder = t.enqueue(keyed(t.job())).await;
    let before = t.show(&holder).await;
    assert_eq!(t.offer(asking(t.job(), ALL)).await, Err(replaced(&holder)));
    assert_eq!(t.show(&holder).await, before);
}

async fn a_replaced_number_of_attempts_counts(t: Trial) {
    t.job_in(State::Retry, keyed(t.named("a"))).await;
    let by = asking(t.saying("x").max_attempts(2), [Replace::MaxAttempts]);
    assert_eq!(t.offer(by).await, Err(replaced(&id("a"))));
    t.sweep_after(HOUR).await;
    assert_eq!(t.retry(&t.claim_one().await, secs(1)).await, Ok(State::Archived));
}

async fn a_holder_of_another_kind_is_not_open(t: Trial) {
    let shared = || Unique::key("k").any_kind().replace(ALL);
    let holder = t.enqueue(t.job().unique(shared())).await;
    let before = t.show(&holder).await;
    let kind = Kind::new("another").expect("kind");
    let another = Envelope::builder(t.queue.clone(), kind).unique(shared());
    assert_eq!(t.offer(another).await, Err(duplicate(&holder)));
    assert_eq!(t.show(&holder).await, before);
    assert_eq!(t.offer(t.saying("x").unique(shared())).await, Err(replaced(&holder)));
}

fn throttled(job: EnvelopeBuilder) -> EnvelopeBuilder {
    job.unique(Unique::key("k").mode(Mode::Throttle { window: DAY }).replace([Replace::Payload]))
}

async fn a_throttle_holder_is_open_while_it_waits(t: Trial) {
    let holder = t.enqueue(throttled(t.job()).retention(HOUR)).await;
    assert_eq!(t.offer(throttled(t.saying("x"))).await, Err(replaced(&holder)));
    let held = t.claim_one().await;
    assert_eq!(t.offer(throttled(t.saying("y"))).await, Err(duplicate(&holder)), "it runs");
    t.complete(&held).await.expect("completed");
    assert_eq!(t.offer(throttled(t.saying("y"))).await, Err(duplicate(&holder)), "it is done");
    t.sweep_after(HOUR).await;
    assert_eq!(t.offer(throttled(t.saying("y"))).await, Err(duplicate(&holder)), "it is gone");
}

async fn a_stranger_under_the_id_of_a_throttle_holder_that_is_gone_is_not_open(t: Trial) {
    t.enqueue(throttled(t.named("a"))).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    t.enqueue(t.named("a")).await;
    let before = t.show(&id("a")).await;
    assert_eq!(t.offer(throttled(t.saying("x"))).await, Err(duplicate(&id("a"))));
    assert_eq!(t.show(&id("a")).await, before);
}

async fn the_key_stays_the_holders(t: Trial) {
    let by_payload = || Unique::by_payload().replace([Replace::Priority]);
    let keyed = |job: EnvelopeBuilder| asking(job, ALL);
    let holder = t.enqueue(keyed(t.job())).await;
    t.offer(keyed(t.saying("x"))).await.expect_err("replaced");
    assert_eq!(t.offer(keyed(t.job())).await, Err(replaced(&holder)));

    // The key is the first content, also where that is the key.
    let holder = t.enqueue(t.job().unique(by_payload())).await;
    assert_eq!(t.offer(t.job().unique(by_payload())).await, Err(replaced(&holder)));
    t.enqueue(t.saying("x").unique(by_payload())).await;
}

async fn a_replaced_payload_is_judged_by_its_own_fingerprint(t: Trial) {
    let holder = t.enqueue(keyed(t.job())).await;
    t.offer(asking(t.saying("new"), [Replace::Payload])).await.expect_err("replaced");
    t.quarantine(&t.fingerprint(&holder).await).await;
    assert!(t.offer(t.job()).await.is_ok(), "the first content is not closed");
    assert_eq!(t.claim(10).await.len(), 1);
    assert_eq!(t.state(&holder).await, State::Quarantined);
}

async fn a_quarantined_duplicate_replaces_nothing(t: Trial) {
    let holder = t.enqueue(keyed(t.job())).await;
    let (before, by) = (t.show(&holder).await, build(other(&t, ALL)));
    t.quarantine(&by.fingerprint()).await;
    let refused = Err(quarantined(by.fingerprint()));
    assert_eq!(t.offer_all(&[by]).await, [refused]);
    assert_eq!(t.show(&holder).await, before);
}

async fn a_batch_replaces_into_its_own_earlier_jobs(t: Trial) {
    let jobs = [
        keyed(t.named("a")),
        asking(t.saying("1"), [Replace::Payload]),
        asking(t.saying("2"), [Replace::Payload, Replace::Priority]).priority(9),
        t.named("b").priority(8),
    ];
    let outcomes = t.offer_all(&jobs.map(build)).await;
    assert_eq!(outcomes[1..3], [Err(replaced(&id("a"))), Err(replaced(&id("a")))]);
    assert_eq!(t.envelope(&id("a")).await.payload(), "2");
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn an_atomic_batch_replaces_nothing(t: Trial) {
    let holder = t.enqueue(keyed(t.job())).await;
    let before = t.show(&holder).await;
    let jobs = [t.job(), other(&t, ALL)].map(build);
    let error = t.store.enqueue_atomic(&t.queue, &jobs).await.expect_err("refused");
    assert_eq!((error.index, error.error), (Some(1), duplicate(&holder)));
    assert_eq!(t.show(&holder).await, before);
}

async fn a_full_queue_is_replaced_into(t: Trial) {
    let holder = t.enqueue(keyed(t.job())).await;
    t.limit(1).await;
    assert_eq!(t.offer(other(&t, ALL)).await, Err(replaced(&holder)));
}

async fn a_replaced_payload_wakes_nobody(t: Trial) {
    for state in [State::Pending, State::Scheduled] {
        let t = t.other_queue().await;
        t.job_in(state, keyed(t.job())).await;
        t.token().await;
        t.offer(asking(t.saying("x"), [Replace::Payload])).await.expect_err("replaced");
        assert!(!t.token().await, "{state}");
    }
}
