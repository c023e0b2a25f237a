//! How a holder ends its job, or puts it off.

use crate::trial::*;
use sprag::{
    State, StoreError,
    store::{Archive, ArchiveReason, Complete, Ending, EndingReason, Failure, Held, Snooze},
};

cases! {
    a_completed_job_without_retention_is_gone,
    a_completed_job_with_retention_is_kept_with_its_result,
    a_completed_job_leaves_no_failures_for_its_id,
    a_result_of_256_kib_is_kept,
    a_larger_result_completes_the_job_without_it,
    a_retried_job_counts_an_attempt_and_waits,
    a_retried_job_is_claimed_with_its_attempt,
    the_last_attempt_archives_the_job,
    one_attempt_is_the_least,
    a_thousand_attempts_are_the_most,
    a_failure_is_recorded_whole,
    the_last_twenty_failures_are_kept,
    an_error_is_cut_at_4_kib_with_a_mark,
    an_archived_job_counts_no_attempt,
    an_archived_job_tells_why,
    an_archive_with_an_error_records_it,
    an_archive_with_a_long_error_cuts_it,
    a_snoozed_job_is_scheduled_and_counts_nothing,
    a_snoozed_job_keeps_its_attempts_and_failures,
    the_second_settlement_in_a_call_is_rejected,
}

fn ending(t: &Trial, reason: EndingReason, at: sprag::Timestamp) -> Option<Ending> {
    Some(Ending { reason, at, worker: Some(t.worker.clone()) })
}

async fn a_completed_job_without_retention_is_gone(t: Trial) {
    let job = t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    assert_eq!(t.complete_with(&held, Some(b"1".to_vec())).await, Ok(()));
    assert_eq!(t.find(&job).await, Err(no_job(&job)));
    let info = t.info().await;
    assert_eq!((info.unfinished, info.completed), (0, 0));
}

async fn a_completed_job_with_retention_is_kept_with_its_result(t: Trial) {
    t.enqueue(t.job().retention(HOUR)).await;
    let held = t.claim_one().await;
    t.advance(secs(3)).await;
    assert_eq!(t.complete_with(&held, Some(b"{\"ok\":1}\n\0".to_vec())).await, Ok(()));
    let (info, now) = (t.show(&held.id).await, t.now().await);
    assert_eq!((info.state, info.holder), (State::Completed, None));
    assert_eq!(info.result.as_deref(), Some(&b"{\"ok\":1}\n\0"[..]));
    assert_eq!(info.ending, ending(&t, EndingReason::Completed, now));
    assert_eq!(info.evicted_at, Some(now + HOUR));
    let counters = t.info().await;
    assert_eq!((counters.unfinished, counters.completed), (0, 1));
}

async fn a_completed_job_leaves_no_failures_for_its_id(t: Trial) {
    t.enqueue(t.named("a")).await;
    t.claim_one().await;
    t.vanish().await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    t.enqueue(t.named("a")).await;
    let info = t.show(&id("a")).await;
    assert_eq!((info.attempt, info.crash, info.errors), (0, 0, vec![]));
}

async fn a_result_of_256_kib_is_kept(t: Trial) {
    t.enqueue(t.job().retention(HOUR)).await;
    let (held, result) = (t.claim_one().await, vec![b'1'; 256 << 10]);
    assert_eq!(t.complete_with(&held, Some(result.clone())).await, Ok(()));
    let info = t.show(&held.id).await;
    assert_eq!(info.result.as_deref(), Some(&result[..]));
    assert_eq!(info.ending.expect("ended").reason, EndingReason::Completed);
}

async fn a_larger_result_completes_the_job_without_it(t: Trial) {
    t.enqueue(t.job().retention(HOUR)).await;
    let held = t.claim_one().await;
    assert_eq!(t.complete_with(&held, Some(vec![b'1'; (256 << 10) + 1])).await, Ok(()));
    let info = t.show(&held.id).await;
    assert_eq!((info.state, info.result), (State::Completed, None));
    assert_eq!(info.ending.expect("ended").reason, EndingReason::CompletedWithoutResult);
}

async fn a_retried_job_counts_an_attempt_and_waits(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    assert_eq!(t.retry(&held, secs(8)).await, Ok(State::Retry));
    let info = t.show(&held.id).await;
    assert_eq!((info.state, info.attempt, info.crash), (State::Retry, 1, 0));
    assert_eq!((info.due_at, info.holder), (Some(t.now().await + secs(8)), None));
    let counters = t.info().await;
    assert_eq!((counters.retry, counters.active, counters.unfinished), (1, 0, 1));
    assert_eq!(t.sweep_after(secs(8) - ms(1)).await.promoted, 0);
    assert_eq!(t.sweep_after(ms(1)).await.promoted, 1);
}

async fn a_retried_job_is_claimed_with_its_attempt(t: Trial) {
    t.enqueue(t.job()).await;
    for attempt in 0..3 {
        let claimed = t.claim(1).await.remove(0);
        assert_eq!((claimed.attempt, claimed.crash), (attempt, 0));
        t.retry(&held(&claimed), secs(1)).await.expect("retried");
        t.sweep_after(secs(1)).await;
    }
}

async fn the_last_attempt_archives_the_job(t: Trial) {
    t.enqueue(t.job().max_attempts(2)).await;
    assert_eq!(t.retry(&t.claim_one().await, secs(1)).await, Ok(State::Retry));
    t.sweep_after(secs(1)).await;
    let held = t.claim_one().await;
    assert_eq!(t.retry(&held, secs(1)).await, Ok(State::Archived));
    let (info, now) = (t.show(&held.id).await, t.now().await);
    assert_eq!((info.state, info.attempt, info.due_at), (State::Archived, 2, None));
    assert_eq!(info.errors.len(), 2);
    assert_eq!(info.ending, ending(&t, EndingReason::Exhausted, now));
    let counters = t.info().await;
    assert_eq!((counters.archived, counters.retry, counters.unfinished), (1, 0, 0));
}

async fn one_attempt_is_the_least(t: Trial) {
    t.enqueue(t.job().max_attempts(1)).await;
    assert_eq!(t.retry(&t.claim_one().await, secs(1)).await, Ok(State::Archived));
}

async fn a_thousand_attempts_are_the_most(t: Trial) {
    let job = t.enqueue(t.job().max_attempts(1_000)).await;
    for _ in 1..1_000 {
        assert_eq!(t.retry(&t.claim_one().await, ms(1)).await, Ok(State::Retry));
        t.sweep_after(ms(1)).await;
    }
    assert_eq!(t.retry(&t.claim_one().await, ms(1)).await, Ok(State::Archived));
    assert_eq!(t.show(&job).await.attempt, 1_000);
}

async fn a_failure_is_recorded_whole(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.advance(secs(2)).await;
    let at = t.now().await;
    t.retry_with(&held, HOUR, "no \"route\"\n\0 ü").await.expect("retried");
    let failure = Failure {
        at,
        attempt: Some(1),
        crash: None,
        worker: Some(t.worker.to_string()),
        error: Some("no \"route\"\n\0 ü".to_owned()),
    };
    assert_eq!(t.show(&held.id).await.errors, [failure]);
}

async fn the_last_twenty_failures_are_kept(t: Trial) {
    let job = t.enqueue(t.job()).await;
    for attempt in 1..=22 {
        t.retry_with(&t.claim_one().await, secs(1), &format!("e{attempt}")).await.expect("retry");
        t.sweep_after(secs(1)).await;
    }
    let attempts: Vec<_> = t.show(&job).await.errors.iter().map(|e| e.attempt).collect();
    assert_eq!(attempts, (3..=22).map(Some).collect::<Vec<_>>());
}

async fn an_error_is_cut_at_4_kib_with_a_mark(t: Trial) {
    let job = t.enqueue(t.job()).await;
    for bytes in [4_096, 4_097] {
        t.retry_with(&t.claim_one().await, secs(1), &"x".repeat(bytes)).await.expect("retried");
        t.sweep_after(secs(1)).await;
    }
    let errors = t.show(&job).await.errors;
    let texts: Vec<&str> = errors.iter().filter_map(|e| e.error.as_deref()).collect();
    assert_eq!(texts[0], "x".repeat(4_096));
    assert_eq!(texts[1].len(), 4_096);
    assert!(texts[1].ends_with("x… (cut)"));
}

async fn an_archived_job_counts_no_attempt(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    assert_eq!(t.archive(&held).await, Ok(()));
    let info = t.show(&held.id).await;
    assert_eq!((info.state, info.attempt, info.errors.len()), (State::Archived, 0, 0));
    let counters = t.info().await;
    assert_eq!((counters.archived, counters.unfinished), (1, 0));
}

async fn an_archived_job_tells_why(t: Trial) {
    for (reason, told) in [
        (ArchiveReason::Discarded, EndingReason::Discarded),
        (ArchiveReason::Undecodable, EndingReason::Undecodable),
    ] {
        t.enqueue(t.job()).await;
        let held = t.claim_one().await;
        assert_eq!(t.archive_with(&held, reason, None).await, Ok(()));
        assert_eq!(t.show(&held.id).await.ending, ending(&t, told, t.now().await));
    }
}

async fn an_archive_with_an_error_records_it(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.archive_with(&held, ArchiveReason::Discarded, Some("no")).await.expect("archived");
    let failure = Failure {
        at: t.now().await,
        attempt: None,
        crash: None,
        worker: Some(t.worker.to_string()),
        error: Some("no".to_owned()),
    };
    assert_eq!(t.show(&held.id).await.errors, [failure]);
}

async fn an_archive_with_a_long_error_cuts_it(t: Trial) {
    t.enqueue(t.job()).await;
    let (held, long) = (t.claim_one().await, "x".repeat(5_000));
    t.archive_with(&held, ArchiveReason::Discarded, Some(&long)).await.expect("archived");
    let error = t.show(&held.id).await.errors.remove(0).error.expect("recorded");
    assert!(error.len() == 4_096 && error.ends_with("… (cut)"));
}

async fn a_snoozed_job_is_scheduled_and_counts_nothing(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    assert_eq!(t.snooze(&held, secs(8)).await, Ok(()));
    let info = t.show(&held.id).await;
    assert_eq!((info.state, info.attempt, info.crash), (State::Scheduled, 0, 0));
    assert_eq!((info.due_at, info.holder), (Some(t.now().await + secs(8)), None));
    let counters = t.info().await;
    assert_eq!((counters.scheduled, counters.active, counters.unfinished), (1, 0, 1));
    t.sweep_after(secs(8)).await;
    assert_eq!(t.claim_one().await.id, held.id);
}

async fn a_snoozed_job_keeps_its_attempts_and_failures(t: Trial) {
    t.enqueue(t.job()).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    let held = t.claim_one().await;
    t.snooze(&held, secs(1)).await.expect("snoozed");
    let info = t.show(&held.id).await;
    assert_eq!((info.attempt, info.errors.len()), (1, 1));
}

async fn the_second_settlement_in_a_call_is_rejected(t: Trial) {
    let twice = |held: &Held| [held.clone(), held.clone()];
    let second = |id| Ok(vec![Ok(()), Err::<(), StoreError>(rejected(id))]);
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    let snoozes = twice(&held).map(|held| Snooze { held, delay: secs(1) });
    assert_eq!(t.store.snooze(&t.queue, &snoozes).await, second(&held.id));

    t.sweep_after(secs(1)).await;
    let held = t.claim_one().await;
    assert_eq!(t.store.requeue(&t.queue, &twice(&held)).await, second(&held.id));

    let held = t.claim_one().await;
    let retry = |held| sprag::store::Retry { held, delay: secs(1), error: String::new() };
    let outcomes = t.store.retry(&t.queue, &twice(&held).map(retry)).await;
    assert_eq!(outcomes, Ok(vec![Ok(State::Retry), Err(rejected(&held.id))]));
    assert_eq!(t.show(&held.id).await.attempt, 1);

    t.sweep_after(secs(1)).await;
    let held = t.claim_one().await;
    let completes = twice(&held).map(|held| Complete { held, result: None });
    assert_eq!(t.store.complete(&t.queue, &completes).await, second(&held.id));

    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    let reason = ArchiveReason::Discarded;
    let archives = twice(&held).map(|held| Archive { held, reason, error: None });
    assert_eq!(t.store.archive(&t.queue, &archives).await, second(&held.id));
}
