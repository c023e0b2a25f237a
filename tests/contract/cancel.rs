//! An operator stops a job.

use crate::trial::*;
use sprag::{
    State,
    store::{Change, Ending, EndingReason, Operation},
};

cases! {
    an_unfinished_job_is_cancelled_in_every_state,
    a_cancelled_job_is_never_claimed,
    a_cancelled_scheduled_job_is_never_promoted,
    a_cancelled_active_job_is_never_reclaimed,
    a_cancelled_active_job_tells_who_held_it,
    a_cancelled_job_is_unchanged_by_a_second_cancel,
    another_finished_job_cannot_be_cancelled,
    an_absent_job_is_not_found,
    a_job_of_an_absent_queue_is_not_found,
    the_second_in_a_call_is_unchanged,
    each_of_a_call_has_its_own_outcome,
    a_cancelled_job_keeps_its_failures,
}

async fn an_unfinished_job_is_cancelled_in_every_state(t: Trial) {
    for state in UNFINISHED {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        assert_eq!(t.cancel(&job).await, Ok(Change::Changed), "{state}");
        let (info, counters) = (t.show(&job).await, t.info().await);
        assert_eq!((info.state, info.due_at, info.holder), (State::Cancelled, None, None));
        let ending = info.ending.expect("ended");
        assert_eq!((ending.reason, ending.at), (EndingReason::Operator, t.now().await));
        assert_eq!((counters.unfinished, counters.cancelled), (0, 1), "{state}");
    }
}

async fn a_cancelled_job_is_never_claimed(t: Trial) {
    t.enqueue_named(&["a"]).await;
    t.cancel(&id("a")).await.expect("cancelled");
    assert!(t.claim(10).await.is_empty());
}

async fn a_cancelled_scheduled_job_is_never_promoted(t: Trial) {
    for state in [State::Scheduled, State::Retry] {
        let job = t.job_in(state, t.job()).await;
        t.cancel(&job).await.expect("cancelled");
        assert_eq!(t.sweep_after(HOUR).await.promoted, 0);
        assert_eq!(t.state(&job).await, State::Cancelled);
    }
}

async fn a_cancelled_active_job_is_never_reclaimed(t: Trial) {
    let job = t.job_in(State::Active, t.job()).await;
    t.cancel(&job).await.expect("cancelled");
    assert_eq!(t.vanish().await.reclaimed, 0);
    assert_eq!(t.show(&job).await.crash, 0);
}

async fn a_cancelled_active_job_tells_who_held_it(t: Trial) {
    for (state, worker) in [(State::Active, Some(t.worker.clone())), (State::Pending, None)] {
        let job = t.job_in(state, t.job()).await;
        t.cancel(&job).await.expect("cancelled");
        let ending = Ending { reason: EndingReason::Operator, at: t.now().await, worker };
        assert_eq!(t.show(&job).await.ending, Some(ending));
    }
}

async fn a_cancelled_job_is_unchanged_by_a_second_cancel(t: Trial) {
    let job = t.job_in(State::Cancelled, t.job()).await;
    let before = t.show(&job).await;
    t.advance(HOUR).await;
    assert_eq!(t.cancel(&job).await, Ok(Change::Unchanged));
    assert_eq!(t.show(&job).await, before, "nor is it kept longer");
}

async fn another_finished_job_cannot_be_cancelled(t: Trial) {
    for (state, text) in [
        (State::Completed, "state: job is completed; cancel needs an unfinished job"),
        (State::Archived, "state: job is archived; cancel needs an unfinished job"),
    ] {
        let job = t.job_in(state, t.job()).await;
        let before = t.show(&job).await;
        assert_eq!(t.cancel(&job).await, Err(invalid(text)));
        assert_eq!(t.show(&job).await, before);
    }
}

async fn an_absent_job_is_not_found(t: Trial) {
    t.enqueue(t.job()).await;
    assert_eq!(t.cancel(&id("nobody")).await, Err(no_job(&id("nobody"))));
}

async fn a_job_of_an_absent_queue_is_not_found(t: Trial) {
    assert_eq!(t.cancel(&id("nobody")).await, Err(no_job(&id("nobody"))));
    assert!(t.store.queue(&t.queue).await.is_err(), "it makes no queue");
}

async fn the_second_in_a_call_is_unchanged(t: Trial) {
    t.enqueue_named(&["a"]).await;
    let outcomes = t.store.operate(&t.queue, Operation::Cancel, &[id("a"), id("a")]).await;
    assert_eq!(outcomes, Ok(vec![Ok(Change::Changed), Ok(Change::Unchanged)]));
    assert_eq!(t.info().await.cancelled, 1);
}

async fn each_of_a_call_has_its_own_outcome(t: Trial) {
    t.job_in(State::Completed, t.named("done")).await;
    t.enqueue_named(&["a", "b"]).await;
    let ids = ["a", "done", "nobody", "b"].map(id);
    let outcomes = t.store.operate(&t.queue, Operation::Cancel, &ids).await.expect("cancel");
    let text = "state: job is completed; cancel needs an unfinished job";
    let expected =
        [Ok(Change::Changed), Err(invalid(text)), Err(no_job(&id("nobody"))), Ok(Change::Changed)];
    assert_eq!(outcomes, expected);
}

async fn a_cancelled_job_keeps_its_failures(t: Trial) {
    let job = t.job_in(State::Retry, t.job()).await;
    t.cancel(&job).await.expect("cancelled");
    let info = t.show(&job).await;
    assert_eq!((info.attempt, info.errors.len()), (1, 1));
}
