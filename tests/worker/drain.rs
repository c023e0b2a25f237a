//! A worker that is told to stop.

use crate::bench::{Bench, HOUR, Log, Working, ms, succeed, until_cancelled, worker};
use sprag::Verdict;
use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

/// CASES 9.
#[tokio::test]
async fn a_handler_that_stops_its_worker_completes_and_nothing_new_is_claimed() {
    let (bench, log) = (Bench::new().await, Log::new());
    let shutdown = Arc::new(OnceLock::<sprag::worker::Shutdown>::new());
    let handler = {
        let shutdown = shutdown.clone();
        move |_, _| {
            shutdown.get().expect("set before the first job").drain();
            async { Ok(()) }
        }
    };
    let working = Working::start(worker(&bench.client, &log, handler).concurrency(1));
    shutdown.set(working.shutdown.clone()).expect("once");
    bench.enqueue_batch(3).await;
    let report = working.ended().await;
    assert_eq!((report.completed, log.count("start")), (1, 1));
    let info = bench.info().await;
    assert_eq!((info.pending, info.active), (2, 0));
}

#[tokio::test]
async fn running_jobs_finish_within_the_grace_while_nothing_new_is_claimed() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, _| async {
        tokio::time::sleep(ms(1_200)).await;
        Ok(())
    };
    let builder = worker(&bench.client, &log, handler).concurrency(3).lease(ms(600));
    let working = Working::start(builder);
    bench.enqueue_batch(3).await;
    log.wait("start", 3).await;
    working.shutdown.drain();
    bench.enqueue(&["new"]).await;
    let report = working.ended().await;
    assert_eq!((report.completed, report.requeued, report.lost), (3, 0, 0));
    assert_eq!((log.count("start"), bench.info().await.pending), (3, 1));
}

#[tokio::test]
async fn a_job_longer_than_the_grace_is_told_to_stop_and_runs_elsewhere_with_no_attempt_spent() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = {
        let log = log.clone();
        move |_, context: sprag::Context| {
            let log = log.clone();
            async move {
                context.cancelled().await;
                log.add("told");
                Err(Verdict::retry_in(HOUR, "stopped"))
            }
        }
    };
    let working = Working::start(worker(&bench.client, &log, handler).grace(ms(100)));
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    let report = working.stop().await;
    assert_eq!((report.requeued, report.retried, log.count("told")), (1, 0, 1));

    let job = bench.show("a").await;
    assert_eq!((job.attempt, job.crash, job.errors.len()), (0, 0, 0));
    let other = Working::start(worker(&bench.other_client(), &log, succeed));
    log.wait("start a", 2).await;
    bench.until_done().await;
    assert_eq!(other.stop().await.completed, 1);
}

#[tokio::test]
async fn a_job_that_does_not_listen_is_dropped_and_put_back() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, _| std::future::pending();
    let working = Working::start(worker(&bench.client, &log, handler).grace(ms(50)));
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    let asked = Instant::now();
    assert_eq!(working.stop().await.requeued, 1);
    assert!(asked.elapsed() < ms(2_000), "{:?}", asked.elapsed());
    let info = bench.info().await;
    assert_eq!((info.pending, info.active, bench.show("a").await.attempt), (1, 0, 0));
}

#[tokio::test]
async fn a_job_that_succeeds_after_it_was_told_to_stop_is_completed() {
    let (bench, log) = (Bench::new().await, Log::new());
    let working = Working::start(worker(&bench.client, &log, until_cancelled).grace(ms(50)));
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    let report = working.stop().await;
    assert_eq!((report.completed, report.requeued), (1, 0));
    assert_eq!(bench.info().await.unfinished, 0);
}

/// CASES 8.
#[tokio::test]
async fn a_job_starts_elsewhere_only_after_the_first_handler_was_told_to_stop() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = {
        let log = log.clone();
        move |_, context: sprag::Context| {
            let log = log.clone();
            async move {
                tokio::select! {
                    () = tokio::time::sleep(ms(5_000)) => log.add("done at the first"),
                    _ = context.cancelled() => log.add("told"),
                }
                Err(Verdict::retry_in(HOUR, "stopped"))
            }
        }
    };
    let first = Working::start(worker(&bench.client, &log, handler).grace(ms(500)).lease(ms(300)));
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    let _second = Working::start(worker(&bench.other_client(), &log, succeed).lease(ms(300)));
    first.stop().await;
    log.wait("start a", 2).await;
    bench.until_done().await;
    assert_eq!(log.all(), ["start a", "told", "start a"]);
}

#[tokio::test]
async fn an_idle_worker_stops_at_once_and_leaves_the_wake_token_to_others() {
    let (bench, log) = (Bench::new().await, Log::new());
    let first = Working::start(worker(&bench.client, &log, succeed));
    let _second = Working::start(worker(&bench.other_client(), &log, succeed));
    bench.until_blocked(2).await;
    first.shutdown.drain();
    let enqueued = Instant::now();
    bench.enqueue(&["a"]).await;
    let delay = log.wait("start a", 1).await.saturating_duration_since(enqueued);
    assert!(delay < ms(1_000), "{delay:?}");
    first.ended().await;
    bench.until_done().await;
}
