//! A field that has no meaning yet is refused by name: a knob that did nothing would be a lie.

use crate::trial::*;
use sprag::{
    Unique, When,
    model::{EnvelopeBuilder, Mode, Replace},
};

cases! {
    a_deadline_is_refused,
    remember_is_refused,
    throttle_is_refused,
    debounce_is_refused,
    replace_is_refused,
    the_rest_of_the_batch_is_admitted,
    an_atomic_batch_names_the_offender,
}

async fn refused(t: &Trial, job: EnvelopeBuilder, field: &str) {
    assert_eq!(t.offer(job).await, Err(invalid(&format!("{field}: not yet supported"))));
    assert!(t.store.queue(&t.queue).await.is_err(), "a refused job makes no queue");
}

async fn a_deadline_is_refused(t: Trial) {
    refused(&t, t.job().deadline(When::In(HOUR)), "deadline").await;
}

async fn remember_is_refused(t: Trial) {
    refused(&t, t.job().remember(HOUR), "remember").await;
}

async fn throttle_is_refused(t: Trial) {
    let mode = Mode::Throttle { window: HOUR };
    refused(&t, t.job().unique(Unique::key("k").mode(mode)), "throttle").await;
}

async fn debounce_is_refused(t: Trial) {
    let mode = Mode::Debounce { window: HOUR, max_wait: None };
    refused(&t, t.job().unique(Unique::key("k").mode(mode)), "debounce").await;
}

async fn replace_is_refused(t: Trial) {
    let unique = Unique::key("k").replace([Replace::Payload]);
    refused(&t, t.job().unique(unique), "replace").await;
}

async fn the_rest_of_the_batch_is_admitted(t: Trial) {
    let jobs = [t.named("a"), t.named("b").remember(HOUR), t.named("c")].map(build);
    let outcomes = t.offer_all(&jobs).await;
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert_eq!(outcomes[1], Err(invalid("remember: not yet supported")));
    assert_eq!(t.claim_ids().await, ["a", "c"]);
}

async fn an_atomic_batch_names_the_offender(t: Trial) {
    let jobs = [t.job(), t.job().remember(HOUR), t.job()].map(build);
    let error = t.store.enqueue_atomic(&t.queue, &jobs).await.expect_err("refused");
    assert_eq!((error.index, error.error), (Some(1), invalid("remember: not yet supported")));
    assert!(t.store.queue(&t.queue).await.is_err(), "nothing is written");
}
