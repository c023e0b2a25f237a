//! A finished job runs again from the start.

use crate::trial::*;
use sprag::{
    State, Unique, When,
    model::EnvelopeBuilder,
    store::{Change, Operation},
};

cases! {
    a_job_that_runs_again_starts_from_zero,
    a_job_that_runs_again_keeps_its_failures_and_times,
    it_is_pending_at_the_back_whenever_it_was_due,
    it_runs_and_ends_like_any_other,
    a_job_past_its_deadline_does_not_run_again,
    a_deadline_to_come_is_no_offence,
    a_quarantined_fingerprint_does_not_run_again,
    it_takes_its_key_again,
    a_held_key_refuses_it,
    a_key_held_by_a_window_refuses_it,
    a_key_that_is_free_again_does_not,
    of_two_jobs_of_a_key_one_runs_again,
    the_state_is_judged_first,
    the_deadline_is_judged_before_the_quarantine,
    the_quarantine_is_judged_before_the_key,
}

const AGAIN: [State; 3] = [State::Completed, State::Archived, State::Cancelled];

async fn rerun(t: &Trial, name: &str) -> Result<Change, sprag::StoreError> {
    t.operate(Operation::Rerun, &id(name)).await
}

async fn a_job_that_runs_again_starts_from_zero(t: Trial) {
    t.enqueue(t.named("a").max_attempts(2).retention(HOUR)).await;
    t.claim_one().await;
    t.vanish().await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.complete_with(&t.claim_one().await, Some(b"1".to_vec())).await.expect("completed");
    assert_eq!(rerun(&t, "a").await, Ok(Change::Changed));
    let info = t.show(&id("a")).await;
    assert_eq!((info.state, info.attempt, info.crash), (State::Pending, 0, 0));
    assert_eq!((info.result, info.ending, info.evicted_at), (None, None, None));
    let info = t.info().await;
    assert_eq!((info.pending, info.completed, info.unfinished), (1, 0, 1));
    let claimed = t.claim(1).await.remove(0);
    assert_eq!((claimed.attempt, claimed.crash), (0, 0));
    assert_eq!(t.retry(&held(&claimed), secs(1)).await, Ok(State::Retry), "two attempts again");
}

async fn a_job_that_runs_again_keeps_its_failures_and_times(t: Trial) {
    t.job_in(State::Retry, t.named("a")).await;
    t.cancel(&id("a")).await.expect("cancelled");
    let before = t.show(&id("a")).await;
    t.advance(HOUR).await;
    rerun(&t, "a").await.expect("pending");
    let info = t.show(&id("a")).await;
    assert_eq!((info.errors.len(), info.envelope), (1, before.envelope));
    assert_eq!(info.errors, before.errors);
}

async fn it_is_pending_at_the_back_whenever_it_was_due(t: Trial) {
    for state in AGAIN {
        let t = t.other_queue().await;
        t.job_in(state, t.named("a")).await;
        t.enqueue_named(&["b"]).await;
        rerun(&t, "a").await.expect("pending");
        assert_eq!(t.claim_ids().await, ["b", "a"], "{state}");
    }
    t.enqueue(t.named("a").run_at(When::In(HOUR))).await;
    t.cancel(&id("a")).await.expect("cancelled");
    rerun(&t, "a").await.expect("pending");
    assert_eq!(t.state(&id("a")).await, State::Pending);
    assert_eq!(t.claim_ids().await, ["a"]);
}

async fn it_runs_and_ends_like_any_other(t: Trial) {
    t.job_in(State::Completed, t.named("a")).await;
    rerun(&t, "a").await.expect("pending");
    assert_eq!(t.sweep_after(HOUR).await.evicted, 0, "its old end is forgotten");
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(t.state(&id("a")).await, State::Completed);
    assert_eq!(t.info().await.completed_today, 2);
    assert_eq!(t.sweep_after(HOUR).await.evicted, 1);
}

async fn a_job_past_its_deadline_does_not_run_again(t: Trial) {
    let text = "deadline: is past; rerun needs one to come";
    for state in AGAIN {
        let t = t.other_queue().await;
        t.job_in(state, t.named("a").deadline(When::In(HOUR))).await;
        t.advance(HOUR).await;
        let before = t.show(&id("a")).await;
        assert_eq!(rerun(&t, "a").await, Err(invalid(text)), "{state}");
        assert_eq!((t.show(&id("a")).await, t.info().await.unfinished), (before, 0));
    }
    t.enqueue(t.named("a").deadline(When::In(ms(1)))).await;
    t.sweep_after(ms(1)).await;
    assert_eq!(rerun(&t, "a").await, Err(invalid(text)), "it expired");
}

async fn a_deadline_to_come_is_no_offence(t: Trial) {
    t.job_in(State::Archived, t.named("a").deadline(When::In(HOUR))).await;
    t.advance(HOUR - ms(1)).await;
    assert_eq!(rerun(&t, "a").await, Ok(Change::Changed));
    assert_eq!(t.sweep_after(ms(1)).await.expired, 1);
}

async fn a_quarantined_fingerprint_does_not_run_again(t: Trial) {
    for state in AGAIN {
        let t = t.other_queue().await;
        t.job_in(state, t.named("a")).await;
        let (before, fingerprint) = (t.show(&id("a")).await, t.fingerprint(&id("a")).await);
        t.quarantine(&fingerprint).await;
        assert_eq!(rerun(&t, "a").await, Err(quarantined(fingerprint)), "{state}");
        assert_eq!((t.show(&id("a")).await, t.info().await.unfinished), (before, 0));
        t.release(&fingerprint).await;
        assert_eq!(rerun(&t, "a").await, Ok(Change::Changed));
    }
}

fn keyed(job: EnvelopeBuilder) -> EnvelopeBuilder {
    job.unique(Unique::key("k"))
}

async fn it_takes_its_key_again(t: Trial) {
    for state in AGAIN {
        let t = t.other_queue().await;
        t.job_in(state, keyed(t.named("a"))).await;
        rerun(&t, "a").await.expect("pending");
        assert_eq!(t.offer(keyed(t.job())).await, Err(duplicate(&id("a"))), "{state}");
        t.cancel(&id("a")).await.expect("cancelled");
        t.enqueue(keyed(t.job())).await;
    }
}

async fn a_held_key_refuses_it(t: Trial) {
    for state in AGAIN {
        let t = t.other_queue().await;
        t.job_in(state, keyed(t.named("a"))).await;
        let holder = t.enqueue(keyed(t.job())).await;
        let before = t.show(&id("a")).await;
        assert_eq!(rerun(&t, "a").await, Err(duplicate(&holder)), "{state}");
        assert_eq!((t.show(&id("a")).await, t.info().await.unfinished), (before, 1));
        assert_eq!(t.offer(keyed(t.job())).await, Err(duplicate(&holder)));
    }
}

async fn a_key_held_by_a_window_refuses_it(t: Trial) {
    t.job_in(State::Archived, keyed(t.named("a"))).await;
    let mode = sprag::model::Mode::Throttle { window: HOUR };
    let holder = t.enqueue(t.job().unique(Unique::key("k").mode(mode))).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(rerun(&t, "a").await, Err(duplicate(&holder)));
    t.advance(HOUR).await;
    assert_eq!(rerun(&t, "a").await, Ok(Change::Changed));
}

async fn a_key_that_is_free_again_does_not(t: Trial) {
    t.job_in(State::Archived, keyed(t.named("a"))).await;
    let holder = t.enqueue(keyed(t.job())).await;
    t.cancel(&holder).await.expect("cancelled");
    assert_eq!(rerun(&t, "a").await, Ok(Change::Changed));
    let refused = t.operate(Operation::Rerun, &holder).await;
    assert_eq!(refused, Err(duplicate(&id("a"))));
}

async fn of_two_jobs_of_a_key_one_runs_again(t: Trial) {
    for name in ["a", "b"] {
        t.job_in(State::Archived, keyed(t.named(name))).await;
    }
    let both = t.store.operate(&t.queue, Operation::Rerun, &["a", "b"].map(id)).await;
    assert_eq!(both, Ok(vec![Ok(Change::Changed), Err(duplicate(&id("a")))]));
    assert_eq!(t.claim_ids().await, ["a"]);
}

async fn the_state_is_judged_first(t: Trial) {
    t.job_in(State::Quarantined, t.named("a").deadline(When::In(HOUR))).await;
    t.advance(HOUR).await;
    let text = "state: job is quarantined; rerun needs archived, cancelled or completed";
    assert_eq!(rerun(&t, "a").await, Err(invalid(text)));
}

async fn the_deadline_is_judged_before_the_quarantine(t: Trial) {
    t.job_in(State::Archived, t.named("a").deadline(When::In(HOUR))).await;
    t.advance(HOUR).await;
    t.quarantine(&t.fingerprint(&id("a")).await).await;
    let text = "deadline: is past; rerun needs one to come";
    assert_eq!(rerun(&t, "a").await, Err(invalid(text)));
}

async fn the_quarantine_is_judged_before_the_key(t: Trial) {
    t.job_in(State::Archived, keyed(t.named("a"))).await;
    t.enqueue(keyed(t.saying("other"))).await;
    let fingerprint = t.fingerprint(&id("a")).await;
    t.quarantine(&fingerprint).await;
    assert_eq!(rerun(&t, "a").await, Err(quarantined(fingerprint)));
}
