//! What an operator sets for a queue. The limit has a module of its own.

use crate::trial::*;
use sprag::{
    State, StoreError,
    model::MAX_DURATION,
    store::{Claim, Operation, Setting},
};
use std::time::Duration;

cases! {
    a_setting_makes_the_queue,
    no_setting_makes_no_queue,
    settings_are_changed_together,
    a_bad_setting_changes_nothing,
    every_setting_has_its_bounds,
    a_paused_queue_hands_over_nothing,
    a_paused_queue_does_everything_else,
    a_resumed_queue_hands_over_again,
    a_pause_takes_effect_once,
    a_claim_on_a_paused_queue_leaves_no_token,
    a_resume_wakes,
    a_queue_keeps_each_state_as_long_as_it_says,
    a_completed_job_is_kept_as_it_says_itself,
    others_are_kept_for_the_longer_of_both,
    retention_is_that_of_the_end,
    a_lifted_retention_is_the_default,
    so_many_archived_jobs_are_kept,
    no_other_job_counts_as_archived,
    a_shared_sweep_minds_the_number_of_archived_jobs,
}

async fn a_setting_makes_the_queue(t: Trial) {
    let settings = [
        Setting::Limit(None),
        Setting::Paused(false),
        Setting::Retention(State::Archived, None),
        Setting::MaxArchived(None),
        Setting::CrashLimit(None),
        Setting::CrashWindow(None),
    ];
    for setting in settings {
        let t = t.other_queue().await;
        t.set(setting).await;
        assert_eq!(t.info().await.unfinished, 0);
        assert!(t.store.queues().await.expect("queues").contains(&t.queue), "{setting:?}");
    }
}

async fn no_setting_makes_no_queue(t: Trial) {
    assert_eq!(t.store.set(&t.queue, &[]).await, Ok(()));
    assert!(t.store.queue(&t.queue).await.is_err());
}

async fn settings_are_changed_together(t: Trial) {
    let settings = [Setting::Limit(Some(7)), Setting::Paused(true), Setting::Limit(Some(8))];
    assert_eq!(t.store.set(&t.queue, &settings).await, Ok(()));
    let info = t.info().await;
    assert_eq!((info.limit, info.paused), (Some(8), true), "the later one counts");
}

async fn a_bad_setting_changes_nothing(t: Trial) {
    let settings = [Setting::Limit(Some(7)), Setting::CrashLimit(Some(0)), Setting::Paused(true)];
    let text = "crash_limit: 0; must be 1 to 1000";
    assert_eq!(t.store.set(&t.queue, &settings).await, Err(invalid(text)));
    assert!(t.store.queue(&t.queue).await.is_err());
}

async fn every_setting_has_its_bounds(t: Trial) {
    let most = 1 << 53;
    for good in [
        Setting::Limit(Some(0)),
        Setting::Limit(Some(most)),
        Setting::MaxArchived(Some(0)),
        Setting::MaxArchived(Some(most)),
        Setting::CrashLimit(Some(1)),
        Setting::CrashLimit(Some(1_000)),
        Setting::CrashWindow(Some(ms(1))),
        Setting::CrashWindow(Some(MAX_DURATION)),
    ] {
        t.set(good).await;
    }
    for state in ENDED {
        t.set(Setting::Retention(state, Some(ms(1)))).await;
        t.set(Setting::Retention(state, Some(MAX_DURATION))).await;
    }
    let number = "9007199254740993; must be at most 9007199254740992";
    let refused = |setting, text: String| {
        let t = t.clone();
        async move {
            assert_eq!(t.store.set(&t.queue, &[setting]).await, Err(invalid(&text)));
        }
    };
    refused(Setting::Limit(Some(most + 1)), format!("limit: {number}")).await;
    refused(Setting::MaxArchived(Some(most + 1)), format!("max_archived: {number}")).await;
    refused(Setting::CrashLimit(Some(0)), "crash_limit: 0; must be 1 to 1000".into()).await;
    refused(Setting::CrashLimit(Some(1_001)), "crash_limit: 1001; must be 1 to 1000".into()).await;
    for bad in [ms(0), Duration::from_micros(1_500), MAX_DURATION + ms(1), Duration::MAX] {
        let bound = format!("{}; must be whole ms, 1 ms to 10 years", in_ms(bad));
        refused(Setting::CrashWindow(Some(bad)), format!("crash_window: {bound}")).await;
        let retention = Setting::Retention(State::Archived, Some(bad));
        refused(retention, format!("retention: {bound}")).await;
    }
    for state in UNFINISHED {
        let text = format!("retention: {state}; must be of a finished state");
        refused(Setting::Retention(state, Some(HOUR)), text.clone()).await;
        refused(Setting::Retention(state, None), text).await;
    }
}

async fn pause(t: &Trial) {
    t.set(Setting::Paused(true)).await;
}

async fn resume(t: &Trial) {
    t.set(Setting::Paused(false)).await;
}

async fn a_paused_queue_hands_over_nothing(t: Trial) {
    t.enqueue(t.job()).await;
    pause(&t).await;
    let claim = t.store.claim(&t.queue, &t.worker, 10, LEASE).await;
    assert_eq!(claim, Ok(Claim::default()));
    assert!(!t.sweep().await.claimable);
    let info = t.info().await;
    assert_eq!((info.paused, info.pending, info.unfinished), (true, 1, 1));
}

async fn a_paused_queue_does_everything_else(t: Trial) {
    for verb in Fenced::all() {
        let t = t.other_queue().await;
        t.enqueue(t.job()).await;
        let held = t.claim_one().await;
        pause(&t).await;
        assert_eq!(verb.apply(&t, &held).await, Ok(()), "{verb:?}");
    }
    t.job_in(State::Active, t.job()).await;
    let job = t.job_in(State::Scheduled, t.job()).await;
    pause(&t).await;
    t.enqueue(t.job()).await;
    assert_eq!(t.operate(Operation::Run, &job).await.map(drop), Ok(()));
    assert_eq!(t.vanish().await.reclaimed, 1);
    assert_eq!(t.info().await.pending, 3);
}

async fn a_resumed_queue_hands_over_again(t: Trial) {
    t.enqueue_named(&["a"]).await;
    pause(&t).await;
    t.enqueue_named(&["b"]).await;
    resume(&t).await;
    assert!(!t.info().await.paused);
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn a_pause_takes_effect_once(t: Trial) {
    pause(&t).await;
    pause(&t).await;
    resume(&t).await;
    t.enqueue(t.job()).await;
    t.claim_one().await;
}

async fn a_claim_on_a_paused_queue_leaves_no_token(t: Trial) {
    t.offer_all(&t.jobs(3)).await;
    pause(&t).await;
    assert!(t.token().await, "the enqueue left it");
    assert_eq!(t.claim(1).await, []);
    assert!(!t.token().await);
}

async fn a_resume_wakes(t: Trial) {
    t.enqueue(t.job()).await;
    pause(&t).await;
    t.token().await;
    resume(&t).await;
    assert!(t.token().await);
}

/// How long a job of the queue is kept in a state.
async fn kept(t: &Trial, state: State, own: Option<Duration>) -> Duration {
    let job = own.into_iter().fold(t.job(), |job, own| job.retention(own));
    let job = t.enqueue(job).await;
    match state {
        State::Completed => t.complete(&t.claim_one().await).await.expect("completed"),
        State::Archived => t.archive(&t.claim_one().await).await.expect("archived"),
        State::Cancelled => drop(t.cancel(&job).await.expect("cancelled")),
        _ => {
            t.quarantine(&t.fingerprint(&job).await).await;
            assert_eq!(t.claim(1).await, []);
        }
    }
    let now = ms(t.now().await.as_millis());
    let kept = match t.find(&job).await {
        Ok(info) => ms(info.evicted_at.expect("finished").as_millis()) - now,
        Err(_) => ms(0),
    };
    if state == State::Quarantined {
        let fingerprint = t.fingerprint(&job).await;
        t.operate(Operation::Delete, &job).await.expect("deleted");
        t.release(&fingerprint).await;
    }
    kept
}

async fn a_queue_keeps_each_state_as_long_as_it_says(t: Trial) {
    for state in ENDED {
        for retention in [ms(1), 2 * DAY, MAX_DURATION] {
            t.set(Setting::Retention(state, Some(retention))).await;
            assert_eq!(kept(&t, state, None).await, retention, "{state}");
        }
    }
}

async fn a_completed_job_is_kept_as_it_says_itself(t: Trial) {
    t.set(Setting::Retention(State::Completed, Some(DAY))).await;
    for own in [ms(1), 2 * DAY] {
        assert_eq!(kept(&t, State::Completed, Some(own)).await, own);
    }
}

async fn others_are_kept_for_the_longer_of_both(t: Trial) {
    for state in [State::Archived, State::Cancelled, State::Quarantined] {
        t.set(Setting::Retention(state, Some(DAY))).await;
        assert_eq!(kept(&t, state, Some(HOUR)).await, DAY, "{state}");
        assert_eq!(kept(&t, state, Some(2 * DAY)).await, 2 * DAY, "{state}");
    }
}

async fn retention_is_that_of_the_end(t: Trial) {
    let job = t.job_in(State::Cancelled, t.job()).await;
    let before = t.show(&job).await;
    t.set(Setting::Retention(State::Cancelled, Some(ms(1)))).await;
    assert_eq!(t.show(&job).await, before);
    assert_eq!(t.sweep_after(7 * DAY - ms(1)).await.evicted, 0);
}

async fn a_lifted_retention_is_the_default(t: Trial) {
    let days = [(State::Completed, 0), (State::Archived, 90), (State::Cancelled, 7)];
    for (state, days) in days.into_iter().chain([(State::Quarantined, 90)]) {
        t.set(Setting::Retention(state, Some(HOUR))).await;
        t.set(Setting::Retention(state, None)).await;
        assert_eq!(kept(&t, state, None).await, days * DAY, "{state}");
    }
}

async fn so_many_archived_jobs_are_kept(t: Trial) {
    let left = || async {
        let page = t.store.list(&t.queue, State::Archived, None, None, 100).await.expect("list");
        page.jobs.iter().map(|job| job.id.to_string()).collect::<Vec<_>>()
    };
    // "b" is evicted last by its time, "a" and "c" by their names.
    t.job_in(State::Archived, t.named("b").retention(91 * DAY)).await;
    t.job_in(State::Archived, t.named("c")).await;
    t.job_in(State::Archived, t.named("a").remember(HOUR)).await;
    t.set(Setting::MaxArchived(Some(3))).await;
    assert_eq!(t.sweep().await.evicted, 0);
    t.set(Setting::MaxArchived(Some(2))).await;
    assert_eq!(left().await, ["a", "c", "b"], "a sweep does it");
    assert_eq!(t.sweep().await.evicted, 1);
    assert_eq!(left().await, ["c", "b"]);
    assert_eq!(t.offer(t.named("a")).await, existing(&id("a"), None), "gone as ever");
    t.set(Setting::MaxArchived(None)).await;
    t.job_in(State::Archived, t.named("d")).await;
    assert_eq!(t.sweep().await.evicted, 0);
    t.set(Setting::MaxArchived(Some(0))).await;
    assert_eq!((t.sweep().await.evicted, t.info().await.archived), (3, 0));
}

async fn no_other_job_counts_as_archived(t: Trial) {
    t.set(Setting::MaxArchived(Some(0))).await;
    for state in [State::Completed, State::Cancelled, State::Quarantined] {
        let job = t.job_in(state, t.saying(state.as_str())).await;
        assert_eq!(t.sweep().await.evicted, 0);
        assert_eq!(t.find(&job).await.map(|job| job.state), Ok::<_, StoreError>(state));
    }
}

async fn a_shared_sweep_minds_the_number_of_archived_jobs(t: Trial) {
    t.job_in(State::Archived, t.job()).await;
    t.set(Setting::MaxArchived(Some(0))).await;
    let swept = t.store.sweep(&t.queue, sprag::store::Pace::Shared).await.expect("sweep");
    assert_eq!(swept.evicted, 1);
}
