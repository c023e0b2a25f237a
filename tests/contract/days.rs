//! What a queue counts on each day, UTC.

use crate::trial::*;
use sprag::{
    State, When,
    store::{Day, Operation, Setting},
};

cases! {
    days_are_named_today_first,
    a_day_on_which_nothing_happened_counts_zero,
    each_end_is_counted_on_its_day,
    completions_are_counted,
    failed_attempts_are_counted,
    crashes_are_counted,
    expiries_are_counted_wherever_they_are_seen,
    jobs_put_into_quarantine_are_counted,
    operators_and_time_count_nothing_else,
    counters_outlive_their_jobs,
    ninety_days_are_kept,
    days_are_counted_from_one_to_ninety,
    an_absent_queue_counts_zero_and_is_not_made,
}

async fn days(t: &Trial, count: u32) -> Vec<Day> {
    t.store.days(&t.queue, count).await.expect("days")
}

/// Counters: completed, failed, crashed, expired, quarantined.
async fn counted(t: &Trial) -> [u64; 5] {
    let today = t.today().await;
    [today.completed, today.failed, today.crashed, today.expired, today.quarantined]
}

async fn days_are_named_today_first(t: Trial) {
    // The trial's clock begins at 2025-11-30 10:53:20 UTC.
    t.enqueue(t.job()).await;
    let names = |days: Vec<Day>| days.into_iter().map(|day| day.day).collect::<Vec<_>>();
    assert_eq!(names(days(&t, 3).await), ["2025-11-30", "2025-11-29", "2025-11-28"]);
    t.advance(DAY).await;
    assert_eq!(names(days(&t, 2).await), ["2025-12-01", "2025-11-30"]);
    t.advance(91 * DAY).await;
    assert_eq!(names(days(&t, 3).await), ["2026-03-02", "2026-03-01", "2026-02-28"]);
    t.advance(729 * DAY).await;
    assert_eq!(names(days(&t, 2).await), ["2028-02-29", "2028-02-28"]);
}

async fn a_day_on_which_nothing_happened_counts_zero(t: Trial) {
    t.job_in(State::Completed, t.job()).await;
    t.advance(2 * DAY).await;
    t.job_in(State::Completed, t.job()).await;
    let completed: Vec<u64> = days(&t, 4).await.iter().map(|day| day.completed).collect();
    assert_eq!(completed, [1, 0, 1, 0]);
    let zero = Day { day: "2025-12-01".to_owned(), ..Day::default() };
    assert_eq!(days(&t, 4).await[1], zero);
}

async fn each_end_is_counted_on_its_day(t: Trial) {
    let day = DAY.as_millis() as u64;
    t.advance(ms(day - 1 - t.now().await.as_millis() % day)).await;
    t.offer_all(&t.jobs(2)).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    let later = t.claim_one().await;
    t.advance(ms(1)).await;
    t.complete(&later).await.expect("completed");
    let completed: Vec<u64> = days(&t, 2).await.iter().map(|day| day.completed).collect();
    assert_eq!(completed, [1, 1], "the last and the first millisecond");
}

async fn completions_are_counted(t: Trial) {
    t.job_in(State::Completed, t.job()).await;
    t.enqueue(t.job()).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    assert_eq!(counted(&t).await, [2, 0, 0, 0, 0]);
}

async fn failed_attempts_are_counted(t: Trial) {
    t.job_in(State::Retry, t.job()).await;
    t.job_in(State::Archived, t.job()).await;
    t.enqueue(t.job().max_attempts(1)).await;
    t.retry(&t.claim_one().await, HOUR).await.expect("exhausted");
    assert_eq!(counted(&t).await, [0, 3, 0, 0, 0]);
}

async fn crashes_are_counted(t: Trial) {
    t.offer_all(&t.jobs(3)).await;
    t.claim(3).await;
    t.vanish().await;
    t.claim_one().await;
    t.vanish().await;
    assert_eq!(counted(&t).await, [0, 0, 4, 0, 0], "each job by itself");
}

async fn expiries_are_counted_wherever_they_are_seen(t: Trial) {
    let until = |left| t.job().deadline(When::In(left));
    t.enqueue(until(secs(1))).await;
    t.advance(secs(1)).await;
    t.claim(1).await;
    assert_eq!(counted(&t).await, [0, 0, 0, 1, 0], "by a claim");
    t.enqueue(until(secs(1))).await;
    t.sweep_after(secs(1)).await;
    assert_eq!(counted(&t).await, [0, 0, 0, 2, 0], "by a sweep");
    t.enqueue(until(secs(1))).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("expired");
    assert_eq!(counted(&t).await, [0, 1, 0, 3, 0], "by a retry");
    t.enqueue(until(secs(1))).await;
    t.claim_one().await;
    t.vanish().await;
    assert_eq!(counted(&t).await, [0, 1, 1, 4, 0], "by a reclaim");
}

async fn jobs_put_into_quarantine_are_counted(t: Trial) {
    t.job_in(State::Quarantined, t.job()).await;
    assert_eq!(counted(&t).await, [0, 0, 0, 0, 1], "by a claim");
    t.set(Setting::CrashLimit(Some(1))).await;
    t.enqueue(t.saying("other")).await;
    t.enqueue(t.saying("other")).await;
    t.claim(2).await;
    t.vanish().await;
    assert_eq!(counted(&t).await, [0, 0, 2, 0, 3], "by a reclaim, each job");
    t.quarantine(&build(t.saying("third")).fingerprint()).await;
    assert_eq!(counted(&t).await, [0, 0, 2, 0, 3], "not the fingerprint");
}

async fn operators_and_time_count_nothing_else(t: Trial) {
    t.enqueue(t.job()).await;
    t.requeue(&t.claim_one().await).await.expect("requeued");
    let held = t.claim_one().await;
    t.snooze(&held, secs(1)).await.expect("snoozed");
    t.sweep_after(secs(1)).await;
    for operation in [Operation::Archive, Operation::Rerun, Operation::Cancel, Operation::Delete] {
        t.operate(operation, &held.id).await.expect("done");
    }
    assert!(t.complete(&held).await.is_err() && t.retry(&held, secs(1)).await.is_err());
    assert_eq!(counted(&t).await, [0; 5]);
}

async fn counters_outlive_their_jobs(t: Trial) {
    let job = t.job_in(State::Completed, t.job()).await;
    t.operate(Operation::Delete, &job).await.expect("deleted");
    assert_eq!(counted(&t).await, [1, 0, 0, 0, 0]);
}

async fn ninety_days_are_kept(t: Trial) {
    t.job_in(State::Completed, t.job()).await;
    t.sweep_after(89 * DAY).await;
    let days = days(&t, 90).await;
    assert_eq!((days.len(), days[88].completed, days[89].completed), (90, 0, 1));
}

async fn days_are_counted_from_one_to_ninety(t: Trial) {
    t.enqueue(t.job()).await;
    for count in [0, 91, u32::MAX] {
        let refused = invalid(&format!("days: {count}; must be 1 to 90"));
        assert_eq!(t.store.days(&t.queue, count).await, Err(refused));
    }
    assert_eq!((days(&t, 1).await.len(), days(&t, 90).await.len()), (1, 90));
}

async fn an_absent_queue_counts_zero_and_is_not_made(t: Trial) {
    let zero = |day: &str| Day { day: day.to_owned(), ..Day::default() };
    assert_eq!(days(&t, 2).await, [zero("2025-11-30"), zero("2025-11-29")]);
    assert!(t.store.queue(&t.queue).await.is_err());
}
