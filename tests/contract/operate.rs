//! What an operator does to jobs, in every state.

use crate::trial::*;
use sprag::{
    Codec, JobId, State, StoreError, Unique, When,
    store::{Change, Ending, EndingReason, Operation},
};

cases! {
    every_operation_in_every_state,
    an_absent_job_is_not_found,
    the_same_job_twice_in_a_call_is_judged_twice,
    each_of_a_call_has_its_own_outcome,
    no_operation_minds_the_limit,
    an_archived_job_tells_who_held_it,
    an_ended_active_job_is_out_of_its_holders_hands,
    an_archived_job_is_kept_for_ninety_days,
    an_archived_job_keeps_its_failures,
    a_job_run_now_is_first_in_its_lane,
    a_job_moved_later_and_run_now_is_next,
    a_job_run_now_keeps_its_failures_and_times,
    the_last_of_those_run_now_is_the_first,
    a_deleted_job_is_gone_with_everything,
    a_deleted_waiting_job_is_never_claimed,
    a_deleted_waiting_job_enqueued_again_runs_once,
    a_deleted_job_in_the_middle_is_skipped,
    a_deleted_job_frees_its_id,
    a_deleted_job_frees_its_key,
    deleting_what_had_the_key_frees_nothing,
    only_what_makes_a_job_claimable_wakes,
}

use Change::{Changed, Unchanged};
use Operation::{Archive, Cancel, Delete, Rerun, Run};

/// DESIGN's rows: where the job is afterwards; none if it is gone.
fn expected(operation: Operation, from: State) -> Result<(Change, Option<State>), StoreError> {
    let needs = match operation {
        Cancel | Archive => "an unfinished job",
        Run => "scheduled or retry",
        Rerun => "archived, cancelled or completed",
        Delete => "any other",
    };
    let verb = operation.as_str();
    let forbidden = Err(invalid(&format!("state: job is {from}; {verb} needs {needs}")));
    match (operation, from) {
        (Cancel, state) if state.is_unfinished() => Ok((Changed, Some(State::Cancelled))),
        (Cancel, State::Cancelled) => Ok((Unchanged, Some(from))),
        (Archive, state) if state.is_unfinished() => Ok((Changed, Some(State::Archived))),
        (Archive, State::Archived) => Ok((Unchanged, Some(from))),
        (Run, State::Scheduled | State::Retry) => Ok((Changed, Some(State::Pending))),
        (Rerun, State::Archived | State::Cancelled | State::Completed) => {
            Ok((Changed, Some(State::Pending)))
        }
        (Run | Rerun, State::Pending) => Ok((Unchanged, Some(from))),
        (Delete, State::Active) => forbidden,
        (Delete, _) => Ok((Changed, None)),
        _ => forbidden,
    }
}

async fn every_operation_in_every_state(t: Trial) {
    for operation in Operation::ALL {
        for from in State::ALL {
            let t = t.other_queue().await;
            let job = t.job_in(from, t.job()).await;
            t.advance(secs(1)).await;
            let before = t.show(&job).await;
            let (answer, expected) = (t.operate(operation, &job).await, expected(operation, from));
            assert_eq!(answer, expected.clone().map(|(change, _)| change), "{operation:?} {from}");
            match expected {
                Ok((Changed, Some(to))) => assert_eq!(t.state(&job).await, to),
                Ok((Changed, None)) => assert_eq!(t.find(&job).await, Err(no_job(&job))),
                _ => assert_eq!(t.show(&job).await, before, "{operation:?} {from}"),
            }
            let left = t.find(&job).await.is_ok_and(|info| info.state.is_unfinished());
            assert_eq!(t.info().await.unfinished, u64::from(left), "{operation:?} {from}");
        }
    }
}

async fn an_absent_job_is_not_found(t: Trial) {
    for operation in Operation::ALL {
        assert_eq!(t.operate(operation, &id("nobody")).await, Err(no_job(&id("nobody"))));
        assert!(t.store.queue(&t.queue).await.is_err(), "it makes no queue");
    }
    t.enqueue(t.job()).await;
    for operation in Operation::ALL {
        assert_eq!(t.operate(operation, &id("nobody")).await, Err(no_job(&id("nobody"))));
    }
}

async fn the_same_job_twice_in_a_call_is_judged_twice(t: Trial) {
    for operation in Operation::ALL {
        let t = t.other_queue().await;
        let from = match operation {
            Rerun => State::Archived,
            _ => State::Scheduled,
        };
        let job = t.job_in(from, t.job()).await;
        let outcomes = t.store.operate(&t.queue, operation, &[job.clone(), job.clone()]).await;
        let second = if operation == Delete { Err(no_job(&job)) } else { Ok(Unchanged) };
        assert_eq!(outcomes, Ok(vec![Ok(Changed), second]), "{operation:?}");
    }
}

async fn each_of_a_call_has_its_own_outcome(t: Trial) {
    t.job_in(State::Active, t.named("running")).await;
    t.job_in(State::Completed, t.named("done")).await;
    t.enqueue_named(&["a", "b"]).await;
    let ids = ["a", "running", "nobody", "done", "b", "a"].map(id);
    let outcomes = t.store.operate(&t.queue, Delete, &ids).await.expect("operate");
    let text = "state: job is active; delete needs any other";
    let (gone, nobody) = (Err(no_job(&id("a"))), Err(no_job(&id("nobody"))));
    let expected = [Ok(Changed), Err(invalid(text)), nobody, Ok(Changed), Ok(Changed), gone];
    assert_eq!(outcomes, expected);
    assert_eq!(t.info().await.unfinished, 1);
}

async fn no_operation_minds_the_limit(t: Trial) {
    let scheduled = t.job_in(State::Scheduled, t.job()).await;
    let archived = t.job_in(State::Archived, t.job()).await;
    t.limit(0).await;
    assert_eq!(t.operate(Run, &scheduled).await, Ok(Changed));
    assert_eq!(t.operate(Rerun, &archived).await, Ok(Changed));
    assert_eq!(t.info().await.unfinished, 2);
}

async fn an_archived_job_tells_who_held_it(t: Trial) {
    for (state, worker) in [(State::Active, Some(t.worker.clone())), (State::Pending, None)] {
        let job = t.job_in(state, t.job()).await;
        t.operate(Archive, &job).await.expect("archived");
        let (info, at) = (t.show(&job).await, t.now().await);
        let ending = Some(Ending { reason: EndingReason::Operator, at, worker });
        assert_eq!((info.ending, info.holder, info.due_at), (ending, None, None));
    }
}

async fn an_ended_active_job_is_out_of_its_holders_hands(t: Trial) {
    for operation in [Cancel, Archive] {
        for verb in Fenced::all() {
            let t = t.other_queue().await;
            t.enqueue(t.job()).await;
            let held = t.claim_one().await;
            t.operate(operation, &held.id).await.expect("ended");
            let before = t.show(&held.id).await;
            assert_eq!(verb.apply(&t, &held).await, Err(rejected(&held.id)), "{verb:?}");
            assert_eq!(t.vanish().await.reclaimed, 0);
            assert_eq!((t.show(&held.id).await, t.claim(1).await), (before, vec![]));
        }
    }
}

async fn an_archived_job_is_kept_for_ninety_days(t: Trial) {
    for (own, kept) in [(HOUR, 90 * DAY), (91 * DAY, 91 * DAY)] {
        let job = t.enqueue(t.job().retention(own)).await;
        t.operate(Archive, &job).await.expect("archived");
        assert_eq!(t.show(&job).await.evicted_at, Some(t.now().await + kept));
    }
}

async fn an_archived_job_keeps_its_failures(t: Trial) {
    let job = t.job_in(State::Retry, t.job()).await;
    t.operate(Archive, &job).await.expect("archived");
    let info = t.show(&job).await;
    assert_eq!((info.attempt, info.errors.len()), (1, 1));
    assert_eq!(t.info().await.failed_today, 1, "an operator's end is no failure");
}

async fn a_job_run_now_is_first_in_its_lane(t: Trial) {
    for state in [State::Scheduled, State::Retry] {
        let t = t.other_queue().await;
        t.job_in(state, t.named("a")).await;
        t.enqueue_named(&["b", "c"]).await;
        t.enqueue(t.named("high").priority(9)).await;
        assert_eq!(t.operate(Run, &id("a")).await, Ok(Changed));
        assert_eq!(t.show(&id("a")).await.due_at, None);
        assert_eq!(t.claim_ids().await, ["high", "a", "b", "c"], "{state}");
        assert_eq!(t.sweep_after(HOUR).await.promoted, 0);
    }
}

async fn a_job_moved_later_and_run_now_is_next(t: Trial) {
    let keyed = |job: sprag::model::EnvelopeBuilder| {
        job.unique(Unique::key("k").replace([sprag::model::Replace::RunAt]))
    };
    t.enqueue_named(&["first"]).await;
    t.enqueue(keyed(t.named("a"))).await;
    t.enqueue_named(&["last"]).await;
    let later = keyed(t.job()).run_at(When::In(HOUR));
    assert_eq!(t.offer(later).await, Err(replaced(&id("a"))));
    t.operate(Run, &id("a")).await.expect("pending");
    assert_eq!(t.claim_ids().await, ["a", "first", "last"], "and once");
}

async fn a_job_run_now_keeps_its_failures_and_times(t: Trial) {
    let job = t.job_in(State::Retry, t.job()).await;
    let before = t.show(&job).await;
    t.advance(secs(1)).await;
    t.operate(Run, &job).await.expect("pending");
    let info = t.show(&job).await;
    assert_eq!((info.attempt, info.errors), (1, before.errors));
    assert_eq!(info.envelope, before.envelope);
}

async fn the_last_of_those_run_now_is_the_first(t: Trial) {
    for name in ["a", "b", "c"] {
        t.job_in(State::Scheduled, t.named(name)).await;
    }
    t.operate(Run, &id("c")).await.expect("pending");
    let both = t.store.operate(&t.queue, Run, &["b", "a"].map(id)).await;
    assert_eq!(both, Ok(vec![Ok(Changed); 2]));
    assert_eq!(t.claim_ids().await, ["a", "b", "c"], "as if one after another");
}

async fn a_deleted_job_is_gone_with_everything(t: Trial) {
    t.enqueue(t.named("a").retention(DAY)).await;
    t.claim_one().await;
    t.vanish().await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.complete_with(&t.claim_one().await, Some(b"1".to_vec())).await.expect("completed");
    t.operate(Delete, &id("a")).await.expect("deleted");
    assert_eq!(t.info().await.completed, 0);
    t.enqueue(t.named("a")).await;
    let info = t.show(&id("a")).await;
    assert_eq!((info.attempt, info.crash, info.errors), (0, 0, vec![]));
    assert_eq!((info.result, info.ending, info.evicted_at), (None, None, None));
    assert_eq!(t.sweep_after(2 * DAY).await.evicted, 0);
}

async fn a_deleted_waiting_job_is_never_claimed(t: Trial) {
    for state in [State::Pending, State::Scheduled, State::Retry] {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        t.operate(Delete, &job).await.expect("deleted");
        assert_eq!(t.sweep_after(HOUR).await.promoted, 0);
        assert_eq!(t.claim(1).await, []);
    }
}

async fn a_deleted_waiting_job_enqueued_again_runs_once(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    for _ in 0..3 {
        t.operate(Delete, &id("a")).await.expect("deleted");
        t.enqueue_named(&["a"]).await;
    }
    assert_eq!(t.claim_ids().await, ["b", "a"], "at the back");
    assert_eq!(t.info().await.unfinished, 2);
}

async fn a_deleted_job_in_the_middle_is_skipped(t: Trial) {
    t.enqueue_named(&["a", "b", "c", "d"]).await;
    let ids: Vec<JobId> = ["b", "c"].map(id).into();
    t.store.operate(&t.queue, Delete, &ids).await.expect("deleted");
    assert_eq!(t.info().await.pending, 2);
    assert_eq!(t.claim_ids().await, ["a", "d"]);
}

async fn a_deleted_job_frees_its_id(t: Trial) {
    for state in State::ALL.into_iter().filter(|state| *state != State::Active) {
        let t = t.other_queue().await;
        t.job_in(state, t.named("a")).await;
        t.operate(Delete, &id("a")).await.expect("deleted");
        t.enqueue(t.named("a").payload("other", Codec::Raw)).await;
    }
}

async fn a_deleted_job_frees_its_key(t: Trial) {
    for state in [State::Pending, State::Scheduled, State::Retry] {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job().unique(Unique::key("k"))).await;
        t.operate(Delete, &job).await.expect("deleted");
        t.enqueue(t.job().unique(Unique::key("k"))).await;
    }
}

async fn deleting_what_had_the_key_frees_nothing(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        let old = t.job_in(state, t.job().unique(Unique::key("k"))).await;
        let holder = t.enqueue(t.saying("other").unique(Unique::key("k"))).await;
        t.operate(Delete, &old).await.expect("deleted");
        let third = t.saying("third").unique(Unique::key("k"));
        assert_eq!(t.offer(third).await, Err(duplicate(&holder)), "{state}");
    }
}

async fn only_what_makes_a_job_claimable_wakes(t: Trial) {
    for operation in Operation::ALL {
        let t = t.other_queue().await;
        let from = if operation == Rerun { State::Cancelled } else { State::Scheduled };
        let job = t.job_in(from, t.job()).await;
        t.token().await;
        t.operate(operation, &job).await.expect("done");
        assert_eq!(t.token().await, matches!(operation, Run | Rerun), "{operation:?}");
        t.operate(operation, &job).await.ok();
        assert!(!t.token().await, "unchanged");
    }
}
