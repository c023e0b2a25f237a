//! The key of a debounced job is held until the first claim.

use crate::trial::*;
use sprag::{
    State, Unique, When,
    model::{EnvelopeBuilder, Mode},
    store::Operation,
};
use std::time::Duration;

const WINDOW: Duration = ms(500);

cases! {
    an_event_during_the_run_starts_the_next_job,
    the_claim_frees_the_key_for_good,
    a_claim_that_archives_or_quarantines_frees_the_key,
    an_end_before_the_claim_frees_the_key,
    the_end_of_a_claimed_job_does_not_free_the_next_ones_key,
    a_job_run_now_holds_its_key_until_the_claim,
    a_rerun_takes_the_key_until_the_claim,
    a_release_takes_the_key_until_the_claim,
}

fn event(t: &Trial, payload: &str) -> EnvelopeBuilder {
    let mode = Mode::Debounce { window: WINDOW, max_wait: None };
    t.saying(payload).unique(Unique::key("k").mode(mode))
}

async fn an_event_during_the_run_starts_the_next_job(t: Trial) {
    let first = t.enqueue(event(&t, "1")).await;
    t.sweep_after(WINDOW).await;
    let running = t.claim_one().await;
    let next = t.enqueue(event(&t, "2")).await;
    assert_eq!(t.envelope(&first).await.payload(), "1", "the running one is left alone");
    t.complete(&running).await.expect("completed");
    assert_eq!(t.offer(event(&t, "3")).await, Err(replaced(&next)));
    t.sweep_after(WINDOW).await;
    let claimed = t.claim(10).await;
    assert_eq!(claimed.len(), 1, "one more run");
    assert_eq!(claimed[0].envelope.payload(), "3");
}

async fn the_claim_frees_the_key_for_good(t: Trial) {
    for verb in [Fenced::Requeue, Fenced::Snooze, Fenced::Retry] {
        let t = t.other_queue().await;
        t.enqueue(event(&t, "1")).await;
        t.sweep_after(WINDOW).await;
        verb.apply(&t, &t.claim_one().await).await.expect("held");
        let next = t.enqueue(event(&t, "2")).await;
        assert_eq!(t.offer(event(&t, "3")).await, Err(replaced(&next)), "{verb:?}");
    }
    t.enqueue(event(&t, "1")).await;
    t.sweep_after(WINDOW).await;
    t.claim_one().await;
    t.vanish().await;
    t.enqueue(event(&t, "2")).await;
}

async fn a_claim_that_archives_or_quarantines_frees_the_key(t: Trial) {
    t.enqueue(event(&t, "1").deadline(When::In(WINDOW + ms(1)))).await;
    t.sweep_after(WINDOW).await;
    t.advance(ms(1)).await;
    assert_eq!(t.claim(1).await, []);
    let job = t.enqueue(event(&t, "2")).await;
    t.sweep_after(WINDOW).await;
    t.quarantine(&t.fingerprint(&job).await).await;
    assert_eq!(t.claim(1).await, []);
    assert_eq!(t.state(&job).await, State::Quarantined);
    t.enqueue(event(&t, "3")).await;
}

async fn an_end_before_the_claim_frees_the_key(t: Trial) {
    for operation in [Operation::Cancel, Operation::Archive, Operation::Delete] {
        for wait in [ms(0), WINDOW] {
            let t = t.other_queue().await;
            let job = t.enqueue(event(&t, "1")).await;
            t.sweep_after(wait).await;
            t.operate(operation, &job).await.expect("ended");
            t.enqueue(event(&t, "2")).await;
        }
    }
    t.enqueue(event(&t, "1").deadline(When::In(ms(1)))).await;
    assert_eq!(t.sweep_after(ms(1)).await.expired, 1);
    t.enqueue(event(&t, "2")).await;
}

async fn the_end_of_a_claimed_job_does_not_free_the_next_ones_key(t: Trial) {
    for verb in [Fenced::Complete, Fenced::Archive] {
        let t = t.other_queue().await;
        t.enqueue(event(&t, "1")).await;
        t.sweep_after(WINDOW).await;
        let running = t.claim_one().await;
        let next = t.enqueue(event(&t, "2")).await;
        verb.apply(&t, &running).await.expect("held");
        assert_eq!(t.offer(event(&t, "3")).await, Err(replaced(&next)), "{verb:?}");
    }
}

async fn a_job_run_now_holds_its_key_until_the_claim(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    t.operate(Operation::Run, &job).await.expect("pending");
    assert_eq!(t.offer(event(&t, "2")).await, Err(replaced(&job)));
    assert_eq!(t.state(&job).await, State::Pending);
    t.claim_one().await;
    t.enqueue(event(&t, "3")).await;
}

async fn a_rerun_takes_the_key_until_the_claim(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    t.cancel(&job).await.expect("cancelled");
    t.operate(Operation::Rerun, &job).await.expect("pending again");
    assert_eq!(t.offer(event(&t, "2")).await, Err(replaced(&job)));
    t.archive(&t.claim_one().await).await.expect("archived");

    let next = t.enqueue(event(&t, "3")).await;
    assert_eq!(t.operate(Operation::Rerun, &job).await, Err(duplicate(&next)));
    assert_eq!(t.state(&job).await, State::Archived);
}

async fn a_release_takes_the_key_until_the_claim(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    t.sweep_after(WINDOW).await;
    let fingerprint = t.fingerprint(&job).await;
    t.quarantine(&fingerprint).await;
    assert_eq!(t.claim(1).await, []);
    assert_eq!(t.release(&fingerprint).await.released, 1);
    assert_eq!(t.offer(event(&t, "2")).await, Err(replaced(&job)));
    t.claim_one().await;
    t.enqueue(event(&t, "3")).await;
}
