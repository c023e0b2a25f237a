//! A fingerprint whose jobs vanish with their workers too often enters quarantine.

use crate::trial::*;
use sprag::{
    JobId, State, When,
    store::{Ended, Ending, EndingReason, Failure, Held, Quarantine, Setting, Swept},
};

cases! {
    a_third_crash_quarantines_job_and_fingerprint,
    a_quarantine_tells_crashes_window_and_last_worker,
    a_crash_below_the_limit_quarantines_nothing,
    one_attempt_outlives_crashes,
    the_crash_limit_is_the_queues,
    a_lowered_limit_counts_from_the_next_crash,
    crashes_of_all_jobs_of_a_fingerprint_count_together,
    one_death_is_one_crash,
    one_death_at_the_limit_takes_all_its_jobs,
    a_lease_from_before_the_last_crash_does_not_count,
    a_lease_of_the_very_moment_of_the_last_crash_does_not_count,
    crashes_count_within_the_window_to_the_millisecond,
    a_window_begins_with_its_first_crash,
    a_completion_forgets_the_crashes,
    a_completion_of_other_content_forgets_nothing,
    another_ending_forgets_no_crash,
    the_crash_of_an_expired_job_counts,
    the_last_crash_is_recorded_as_the_others_are,
    a_quarantined_job_waits_for_nobody,
}

/// The next job is claimed by a worker that dies. A moment after the last crash.
async fn die(t: &Trial) -> Swept {
    t.advance(ms(1)).await;
    t.claim_one().await;
    t.vanish().await
}

/// Kills workers by a new job each time; how many of them were quarantined.
async fn kill(t: &Trial, times: usize) -> u64 {
    let mut quarantined = 0;
    for _ in 0..times {
        let job = t.enqueue(t.job()).await;
        quarantined += die(t).await.quarantined;
        let _ = t.cancel(&job).await;
    }
    quarantined
}

async fn quarantines(t: &Trial) -> Vec<Quarantine> {
    t.store.quarantines(&t.queue).await.expect("quarantines")
}

/// One job kills its worker again and again.
async fn poison(t: &Trial, job: &JobId, times: u32) {
    for _ in 0..times {
        if t.state(job).await == State::Retry {
            t.sweep_after(t.due_in(job).await).await;
        }
        die(t).await;
    }
}

async fn a_third_crash_quarantines_job_and_fingerprint(t: Trial) {
    let job = t.enqueue(t.job()).await;
    poison(&t, &job, 2).await;
    t.sweep_after(t.due_in(&job).await).await;
    let other = t.other_worker();
    other.advance(ms(1)).await;
    other.claim_one().await;
    let swept = t.vanish().await;
    let (state, reason) = (State::Quarantined, EndingReason::Quarantined);
    let ended = vec![Ended { id: job.clone(), state, reason }];
    let expected = Swept { reclaimed: 1, quarantined: 1, ended, ..Swept::default() };
    assert_eq!(swept, expected);

    let (info, at, worker) = (t.show(&job).await, t.now().await, Some(other.worker.clone()));
    let ending = Ending { reason: EndingReason::Quarantined, at, worker: worker.clone() };
    assert_eq!((info.state, info.ending), (State::Quarantined, Some(ending)));
    assert_eq!((info.attempt, info.crash, info.due_at, info.holder), (0, 3, None, None));
    assert_eq!(info.evicted_at, Some(at + 90 * DAY));
    let fingerprint = t.fingerprint(&job).await;
    let (crashes, sample_id) = (3, Some(job));
    let reason = Some("3 crashes within 24h; last worker worker:2".to_owned());
    let entry = Quarantine { fingerprint, since: at, crashes, sample_id, worker, reason };
    assert_eq!(quarantines(&t).await, [entry]);
    let info = t.info().await;
    assert_eq!((info.quarantined, info.active, info.unfinished), (1, 0, 0));
    assert_eq!(t.offer(t.job()).await, Err(quarantined(fingerprint)));
}

async fn a_quarantine_tells_crashes_window_and_last_worker(t: Trial) {
    let windows = [(None, "24h"), (Some(90 * secs(60)), "90m"), (Some(secs(61)), "61s")];
    for (window, told) in windows.into_iter().chain([(Some(ms(60_500)), "60500ms")]) {
        let t = t.other_queue().await;
        t.set(Setting::CrashLimit(Some(1))).await;
        t.set(Setting::CrashWindow(window)).await;
        assert_eq!(kill(&t, 1).await, 1);
        let reason = format!("1 crash within {told}; last worker worker:1");
        t.set(Setting::CrashWindow(Some(DAY))).await;
        assert_eq!(quarantines(&t).await[0].reason, Some(reason), "as it was then");
    }
}

async fn a_crash_below_the_limit_quarantines_nothing(t: Trial) {
    let job = t.enqueue(t.job()).await;
    poison(&t, &job, 2).await;
    assert_eq!((t.state(&job).await, quarantines(&t).await), (State::Retry, vec![]));
    t.enqueue(t.job()).await;
}

async fn one_attempt_outlives_crashes(t: Trial) {
    let job = t.enqueue(t.job().max_attempts(1)).await;
    die(&t).await;
    let claimed = t.claim(1).await.remove(0);
    assert_eq!((&claimed.id, claimed.attempt, claimed.crash), (&job, 0, 1));
    t.requeue(&held(&claimed)).await.expect("requeued");
    poison(&t, &job, 2).await;
    assert_eq!(t.ending(&job).await, EndingReason::Quarantined);
}

async fn the_crash_limit_is_the_queues(t: Trial) {
    for limit in [1, 2, 5] {
        let t = t.other_queue().await;
        t.set(Setting::CrashLimit(Some(limit))).await;
        assert_eq!(kill(&t, limit as usize - 1).await, 0);
        assert_eq!(kill(&t, 1).await, 1, "{limit}");
        assert_eq!(quarantines(&t).await[0].crashes, limit);
    }
    t.set(Setting::CrashLimit(Some(1))).await;
    t.set(Setting::CrashLimit(None)).await;
    assert_eq!((kill(&t, 2).await, kill(&t, 1).await), (0, 1), "three by default");
}

async fn a_lowered_limit_counts_from_the_next_crash(t: Trial) {
    t.set(Setting::CrashLimit(Some(9))).await;
    kill(&t, 4).await;
    t.set(Setting::CrashLimit(Some(2))).await;
    t.sweep().await;
    assert_eq!(quarantines(&t).await, []);
    assert_eq!(kill(&t, 1).await, 1);
    assert_eq!(quarantines(&t).await[0].crashes, 5);
}

async fn crashes_of_all_jobs_of_a_fingerprint_count_together(t: Trial) {
    kill(&t, 2).await;
    t.enqueue(t.saying("other")).await;
    assert_eq!(die(&t).await.quarantined, 0, "another content is another count");
    t.claim(1).await;
    let last = t.enqueue(t.named("last")).await;
    die(&t).await;
    assert_eq!((t.state(&last).await, t.show(&last).await.crash), (State::Quarantined, 1));
}

async fn one_death_is_one_crash(t: Trial) {
    t.set(Setting::CrashLimit(Some(2))).await;
    t.offer_all(&t.jobs(5)).await;
    t.claim(3).await;
    t.claim(2).await;
    let swept = t.vanish().await;
    assert_eq!((swept.reclaimed, swept.quarantined), (5, 0));
    assert_eq!((t.info().await.pending, quarantines(&t).await), (5, vec![]));
}

async fn one_death_at_the_limit_takes_all_its_jobs(t: Trial) {
    t.offer_all(&t.jobs(5)).await;
    for _ in 0..2 {
        t.advance(ms(1)).await;
        t.claim(5).await;
        t.vanish().await;
        t.sweep_after(secs(8)).await;
    }
    t.claim(5).await;
    let swept = t.vanish().await;
    assert_eq!((swept.reclaimed, swept.quarantined), (5, 5));
    assert_eq!(quarantines(&t).await[0].crashes, 3);
    assert_eq!(t.info().await.unfinished, 0);
}

async fn a_lease_from_before_the_last_crash_does_not_count(t: Trial) {
    t.set(Setting::CrashLimit(Some(2))).await;
    t.offer_all(&t.jobs(2)).await;
    t.claim_one().await;
    let later: Held = t.claim_one().await;
    t.advance(secs(1)).await;
    t.extend(&later, 2 * LEASE).await.expect("extended");
    assert_eq!(t.vanish().await.reclaimed, 1);
    assert_eq!(t.vanish().await.reclaimed, 1, "both workers have died before it was seen");
    assert_eq!((t.state(&later.id).await, quarantines(&t).await), (State::Pending, vec![]));
    assert_eq!(die(&t).await.quarantined, 1, "the next counts");
}

async fn a_lease_of_the_very_moment_of_the_last_crash_does_not_count(t: Trial) {
    t.set(Setting::CrashLimit(Some(2))).await;
    let job = t.enqueue(t.job()).await;
    die(&t).await;
    t.claim_one().await;
    assert_eq!(t.vanish().await.quarantined, 0);
    let info = t.show(&job).await;
    assert_eq!((info.state, info.crash), (State::Retry, 2), "it is the job's second nonetheless");
    assert_eq!(kill(&t, 1).await, 1);
}

async fn crashes_count_within_the_window_to_the_millisecond(t: Trial) {
    for (wait, quarantined) in [(HOUR - ms(1), 1), (HOUR, 0)] {
        let t = t.other_queue().await;
        t.set(Setting::CrashLimit(Some(2))).await;
        t.set(Setting::CrashWindow(Some(HOUR))).await;
        kill(&t, 1).await;
        t.enqueue(t.job()).await;
        t.advance(wait - LEASE).await;
        t.claim_one().await;
        assert_eq!(t.vanish().await.quarantined, quarantined, "{wait:?}");
    }
}

async fn a_window_begins_with_its_first_crash(t: Trial) {
    t.set(Setting::CrashWindow(Some(HOUR))).await;
    for _ in 0..6 {
        assert_eq!(kill(&t, 1).await, 0);
        t.sweep_after(HOUR / 2 - LEASE).await;
    }
    t.set(Setting::CrashWindow(None)).await;
    assert_eq!(kill(&t, 1).await, 0);
    t.advance(23 * HOUR).await;
    assert_eq!((kill(&t, 1).await, kill(&t, 1).await), (0, 1), "a day by default");
}

async fn a_completion_forgets_the_crashes(t: Trial) {
    kill(&t, 2).await;
    t.enqueue(t.job()).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!((kill(&t, 2).await, kill(&t, 1).await), (0, 1));
}

async fn a_completion_of_other_content_forgets_nothing(t: Trial) {
    kill(&t, 2).await;
    t.enqueue(t.saying("other")).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(kill(&t, 1).await, 1);
}

async fn another_ending_forgets_no_crash(t: Trial) {
    kill(&t, 2).await;
    for verb in [Fenced::Retry, Fenced::Archive, Fenced::Snooze] {
        t.enqueue(t.job()).await;
        verb.apply(&t, &t.claim_one().await).await.expect("held");
    }
    assert_eq!(kill(&t, 1).await, 1);
}

async fn the_crash_of_an_expired_job_counts(t: Trial) {
    t.set(Setting::CrashLimit(Some(2))).await;
    t.enqueue(t.job().deadline(When::In(LEASE))).await;
    let swept = die(&t).await;
    assert_eq!((swept.expired, swept.quarantined), (1, 0));
    assert_eq!(kill(&t, 1).await, 1);
}

async fn the_last_crash_is_recorded_as_the_others_are(t: Trial) {
    t.set(Setting::CrashLimit(Some(1))).await;
    let job = t.enqueue(t.job()).await;
    die(&t).await;
    let failure = Failure {
        at: t.now().await,
        attempt: None,
        crash: Some(1),
        worker: Some(t.worker.to_string()),
        error: None,
    };
    assert_eq!(t.show(&job).await.errors, [failure]);
}

async fn a_quarantined_job_waits_for_nobody(t: Trial) {
    t.set(Setting::CrashLimit(Some(1))).await;
    let job = t.enqueue(t.job()).await;
    die(&t).await;
    t.sweep_after(DAY).await;
    assert_eq!(t.claim(1).await, []);
    assert_eq!(t.state(&job).await, State::Quarantined);
}
