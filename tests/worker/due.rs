//! Due times.

use crate::bench::{Bench, Log, Working, ms, succeed, worker};
use sprag::Timestamp;
use std::time::{Duration, Instant};

const LATER: Duration = Duration::from_secs(10);

/// How long after `since` the job started.
async fn delay(log: &Log, name: &str, since: Instant) -> Duration {
    log.wait(&format!("start {name}"), 1).await.saturating_duration_since(since)
}

/// CASES 24: everybody sleeps.
#[tokio::test]
async fn a_job_due_now_starts_at_once_though_another_is_due_in_ten_seconds() {
    let (bench, log) = (Bench::new().await, Log::new());
    let _working = Working::start(worker(&bench.client, &log, succeed));
    bench.until_blocked(1).await;
    bench.task("later").delay(LATER).await.expect("admitted");
    bench.until_blocked(1).await;
    let enqueued = Instant::now();
    bench.enqueue(&["now"]).await;
    assert!(delay(&log, "now", enqueued).await < ms(1_000));
    assert_eq!(log.all(), ["start now"]);
}

/// CASES 24: all at once, and the worker comes last, first, or in between.
#[tokio::test]
async fn a_job_due_now_starts_at_once_in_whatever_order_things_come() {
    for order in ["worker later now", "later worker now", "later now worker", "now later worker"] {
        let (bench, log) = (Bench::new().await, Log::new());
        let (mut working, mut enqueued) = (Vec::new(), Instant::now());
        for step in order.split(' ') {
            match step {
                "later" => drop(bench.task("later").delay(LATER).await.expect("admitted")),
                "now" => bench.enqueue(&["now"]).await,
                _ => working.push(Working::start(worker(&bench.client, &log, succeed))),
            }
            enqueued = Instant::now();
        }
        assert!(delay(&log, "now", enqueued).await < ms(1_000), "{order}");
    }
}

#[tokio::test]
async fn a_job_scheduled_before_all_others_is_started_when_it_is_due() {
    let (bench, log) = (Bench::new().await, Log::new());
    let _working = Working::start(worker(&bench.client, &log, succeed));
    bench.task("later").delay(LATER).await.expect("admitted");
    bench.until_blocked(1).await;
    let enqueued = Instant::now();
    bench.task("soon").delay(ms(300)).await.expect("admitted");
    let delay = delay(&log, "soon", enqueued).await;
    assert!((ms(290)..ms(1_000)).contains(&delay), "{delay:?}");
}

#[tokio::test]
async fn a_tiny_due_time_is_never_a_block_for_ever() {
    let (bench, log) = (Bench::new().await, Log::new());
    let _working = Working::start(worker(&bench.client, &log, succeed));
    for due in 1..=20 {
        bench.until_blocked(1).await;
        let (name, enqueued) = (format!("due-{due}"), Instant::now());
        bench.task(&name).delay(ms(due)).await.expect("admitted");
        let delay = delay(&log, &name, enqueued).await;
        assert!(delay < ms(1_000), "due in {due} ms: {delay:?}");
    }
}

/// CASES 10.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_jobs_due_in_the_past_start_once_each_on_four_workers() {
    let (bench, log) = (Bench::new().await, Log::new());
    let working: Vec<_> =
        (0..4).map(|_| Working::start(worker(&bench.other_client(), &log, succeed))).collect();
    for i in 0..100 {
        let task = bench.task(&format!("j-{i}")).run_at(Timestamp::from_millis(1_000 + i));
        task.await.expect("admitted");
    }
    bench.until_done().await;
    let reports = Working::stop_all(working).await;
    let completed = reports.iter().map(|report| report.completed).sum::<u64>();
    let starts: std::collections::BTreeSet<_> = log.all().into_iter().collect();
    assert_eq!((log.count("start"), starts.len(), completed), (100, 100, 100));
}
