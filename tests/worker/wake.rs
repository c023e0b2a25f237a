//! Idle workers are woken.

use crate::bench::{Bench, Log, Working, ms, succeed, worker};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// CASES 23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_starts_a_job_by_its_wake_up() {
    let (bench, log) = (Bench::new().await, Log::new());
    let working = Working::start(worker(&bench.client, &log, succeed));
    let mut latencies = Vec::new();
    for i in 0..200 {
        bench.until_blocked(1).await;
        let enqueued = Instant::now();
        bench.enqueue(&[&format!("j-{i}")]).await;
        latencies.push(log.wait("start", i + 1).await.saturating_duration_since(enqueued));
    }
    latencies.sort();
    assert!(latencies[100] < ms(20), "median of {latencies:?}");
    // The fallbacks come every 1.5 s: each wake-up that is missed costs 0.75 s on average. Two may
    // be hit by a machine that stands still for a moment.
    assert!(latencies[197] < ms(300), "longest of {latencies:?}");
    assert_eq!(working.stop().await.completed, 200);
}

/// CASES 21.
#[tokio::test]
async fn a_worker_whose_blocked_connection_is_killed_starts_the_next_job_within_two_seconds() {
    let (bench, log) = (Bench::new().await, Log::new());
    let _working = Working::start(worker(&bench.client, &log, succeed));
    bench.until_blocked(1).await;
    let clients: String = bench.run(&["CLIENT", "LIST"]).await;
    let blocked = clients.lines().find(|line| line.contains("cmd=blpop")).expect("it blocks");
    let id = blocked.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).expect("an id");
    bench.run::<i64>(&["CLIENT", "KILL", "ID", id]).await;
    let enqueued = Instant::now();
    bench.enqueue(&["a"]).await;
    let started = log.wait("start a", 1).await.saturating_duration_since(enqueued);
    assert!(started < Duration::from_secs(2), "{started:?}");
    bench.until_done().await;
}

/// CASES 25.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_idle_workers_are_all_woken_by_a_batch_one_by_another() {
    let (bench, log) = (Bench::new().await, Log::new());
    let go = std::sync::Arc::new(Semaphore::new(0));
    let _working: Vec<_> = (0..8)
        .map(|i| {
            let (log, go) = (log.clone(), go.clone());
            let handler = move |_, _| {
                let go = go.clone();
                log.add(&format!("worker {i}"));
                async move {
                    let _ = go.acquire().await.expect("open");
                    Ok(())
                }
            };
            let client = bench.other_client();
            Working::start(worker(&client, &Log::new(), handler).concurrency(12))
        })
        .collect();
    bench.until_blocked(8).await;
    let enqueued = Instant::now();
    bench.enqueue_batch(100).await;
    let all_busy = log.wait("worker", 96).await.saturating_duration_since(enqueued);
    // The fallbacks come every 1.5 s.
    assert!(all_busy < ms(1_000), "{all_busy:?}");
    assert!((0..8).all(|i| log.count(&format!("worker {i}")) == 12), "{:?}", log.all());
    go.add_permits(100);
    bench.until_done().await;
}
