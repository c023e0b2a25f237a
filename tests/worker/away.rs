//! Redis goes away in mid-work.

use crate::{
    bench::{Answer, Bench, Log, Task, Working, client, ms, worker},
    support::Proxy,
};
use sprag::{Context, Verdict};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

const LEASE: Duration = ms(1_000);

/// Who runs a job and has not been told to stop.
#[derive(Clone, Default)]
struct Floor(Arc<Mutex<HashSet<String>>>);

impl Floor {
    fn enter(&self, name: &str) {
        let is_alone = self.0.lock().expect("floor").insert(name.to_owned());
        // Fails the attempt, which the test sees.
        assert!(is_alone, "{name} is run by two at once");
    }

    fn leave(&self, name: &str) {
        self.0.lock().expect("floor").remove(name);
    }

    async fn run(self, Task(name): Task, context: Context) -> Answer {
        self.enter(&name);
        let done = tokio::select! {
            () = tokio::time::sleep(ms(200)) => true,
            _ = context.cancelled() => false,
        };
        self.leave(&name);
        if done { Ok(()) } else { Err(Verdict::discard("told to stop")) }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_lost_or_run_by_two_at_once_while_redis_is_away_for_three_seconds() {
    let (bench, log, floor) = (Bench::new().await, Log::new(), Floor::default());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let handler = move |task, context| floor.clone().run(task, context);
    let start = || {
        let builder = worker(&client(&proxy.url()), &log, handler.clone());
        Working::start(builder.lease(LEASE).concurrency(4))
    };
    let working = [start(), start()];
    bench.enqueue_batch(60).await;
    log.wait("start", 10).await;

    proxy.refuse(true).await;
    proxy.cut_all();
    tokio::time::sleep(Duration::from_secs(3)).await;
    proxy.refuse(false).await;

    bench.until_done().await;
    let reports = Working::stop_all(working).await;
    let completed = reports.iter().map(|report| report.completed).sum::<u64>();
    let failed = reports.iter().map(|report| report.retried + report.archived).sum::<u64>();
    let info = bench.info().await;
    assert_eq!((completed, failed, info.completed_today, info.archived), (60, 0, 60, 0));
    let jobs: HashSet<_> = log.all().into_iter().collect();
    assert_eq!(jobs.len(), 60);
}

/// CASES 12.
#[tokio::test]
async fn a_complete_answered_readonly_once_is_repeated_and_the_job_ran_once() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let working = Working::start(worker(&client(&proxy.url()), &log, crate::bench::succeed));
    // The first job teaches the proxy the script's name.
    bench.enqueue(&["a"]).await;
    bench.until_done().await;
    proxy.on("complete").answer_error("READONLY You can't write against a read only replica.");
    bench.enqueue(&["b"]).await;
    bench.until_done().await;
    assert_eq!(proxy.struck("complete"), 1);
    assert_eq!(log.all(), ["start a", "start b"]);
    let report = working.stop().await;
    assert_eq!((report.completed, report.retried, report.lost), (2, 0, 0));
}

/// CASES 11, by the worker.
#[tokio::test]
async fn a_complete_whose_reply_is_lost_counts_once_and_the_job_ran_once() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let working = Working::start(worker(&client(&proxy.url()), &log, crate::bench::succeed));
    bench.enqueue(&["a"]).await;
    bench.until_done().await;
    proxy.on("complete").drop_reply();
    bench.enqueue(&["b"]).await;
    log.wait("start b", 1).await;
    let report = working.stop().await;
    assert_eq!(proxy.struck("complete"), 1);
    assert_eq!((report.completed, report.lost, log.count("start")), (2, 0, 2));
    assert_eq!(bench.info().await.completed_today, 2);
}

#[tokio::test]
async fn a_claim_whose_reply_is_lost_costs_neither_a_lease_nor_a_crash() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let handler = {
        let log = log.clone();
        move |_, context: Context| {
            log.add(&format!("crash {}", context.crash()));
            async { Ok(()) }
        }
    };
    let builder = worker(&client(&proxy.url()), &log, handler);
    let _working = Working::start(builder.lease(Duration::from_secs(60)));
    bench.enqueue(&["a"]).await;
    bench.until_done().await;
    proxy.on("claim").after(1).drop_reply();
    let since = std::time::Instant::now();
    bench.enqueue(&["b", "c", "d"]).await;
    bench.until_done().await;
    proxy.wait_struck("claim", 1).await;
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
    assert_eq!((log.count("start"), log.count("crash 0")), (4, 4));
}
