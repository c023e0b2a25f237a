//! Workers that are looked at, made quiet and stopped from far.

use crate::bench::{Bench, HOUR, Log, Working, ms, succeed, worker};
use sprag::{
    State,
    store::{Wish, WorkerState},
};
use std::{sync::Arc, time::Instant};
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_worker_is_seen_running_quiet_and_stopping_with_its_jobs() {
    let (bench, log) = (Bench::new().await, Log::new());
    let go = Arc::new(Semaphore::new(0));
    let handler = {
        let go = go.clone();
        move |_, _| {
            let go = go.clone();
            async move {
                let _ = go.acquire().await;
                Ok(())
            }
        }
    };
    let working = Working::start(worker(&bench.client, &log, handler).concurrency(2).lease(HOUR));
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    // It beats every five seconds; the first beat may have come before the job.
    let seen = bench.until_seen(|seen| seen.busy == 1).await;
    assert_eq!((seen.state, seen.concurrency, seen.gone), (WorkerState::Running, 2, false));
    assert_eq!(
        (seen.queues.as_slice(), seen.pid),
        (&["default".to_owned()][..], std::process::id())
    );
    let job = &seen.jobs[0];
    assert_eq!((&*job.queue, &*job.id, &*job.kind, job.attempt), ("default", "a", "task", 0));

    bench.until_listening().await;
    let asked = Instant::now();
    bench.ask_all(Wish::Quiet).await;
    let seen = bench.until_seen(|seen| seen.state == WorkerState::Quiet).await;
    assert!(asked.elapsed() < ms(1_000), "{:?}", asked.elapsed());
    assert_eq!((seen.busy, seen.jobs.len()), (1, 1));
    bench.enqueue(&["b"]).await;

    let asked = Instant::now();
    bench.ask_all(Wish::Stop).await;
    bench.until_seen(|seen| seen.state == WorkerState::Stopping).await;
    assert!(asked.elapsed() < ms(1_000), "{:?}", asked.elapsed());
    go.add_permits(1);
    let report = working.ended().await;
    assert_eq!((report.completed, report.requeued), (1, 0));
    assert_eq!(log.all(), ["start a"]);
    assert_eq!(bench.show("b").await.state, State::Pending);
    assert!(bench.client.store().workers().await.expect("workers").is_empty(), "it has left");
}

#[tokio::test]
async fn an_idle_worker_that_is_asked_to_stop_ends_within_a_second() {
    let (bench, log) = (Bench::new().await, Log::new());
    let working = Working::start(worker(&bench.client, &log, succeed));
    bench.until_blocked(1).await;
    bench.until_listed(1).await;
    bench.until_listening().await;
    let asked = Instant::now();
    bench.ask_all(Wish::Stop).await;
    working.ended().await;
    assert!(asked.elapsed() < ms(1_000), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_quiet_worker_claims_nothing_more_and_lives_until_it_is_stopped() {
    let (bench, log) = (Bench::new().await, Log::new());
    let working = Working::start(worker(&bench.client, &log, succeed));
    bench.until_blocked(1).await;
    working.shutdown.quiet();
    bench.until_seen(|seen| seen.state == WorkerState::Quiet).await;
    bench.until_blocked(0).await;
    bench.enqueue(&["a"]).await;
    // It would have looked by itself by now.
    tokio::time::sleep(ms(2_000)).await;
    assert!(log.all().is_empty());
    assert!(!working.has_ended(), "it lives");
    let other = Working::start(worker(&bench.other_client(), &log, succeed));
    log.wait("start a", 1).await;
    bench.until_done().await;
    Working::stop_all([working, other]).await;
}
