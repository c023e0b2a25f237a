//! Redis answers that it cannot serve now.

use crate::{
    bench::{Bench, Log, Working, client, ms, worker},
    support::{ANY_SCRIPT, Proxy},
};
use std::time::{Duration, Instant};

const JOBS: usize = 40;

/// CASES 27. Answers how long the first success took, once all was well.
async fn refused_with(answer: &str) -> Duration {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let handler = |_, _| async {
        tokio::time::sleep(ms(50)).await;
        Ok(())
    };
    let working = Working::start(worker(&client(&proxy.url()), &log, handler).concurrency(4));
    bench.enqueue_batch(JOBS).await;
    bench.until("some to be done", |info| info.completed_today > 8).await;
    for command in [ANY_SCRIPT, "blpop", "subscribe", "hset", "time"] {
        proxy.on(command).times(u64::MAX).answer_error(answer);
    }
    tokio::time::sleep(ms(2_500)).await;
    let before = bench.info().await.completed_today;
    assert!(before < JOBS as u64, "some are left");
    proxy.disarm();
    let switched = Instant::now();
    bench.until("a success", |info| info.completed_today > before).await;
    let first = switched.elapsed();
    bench.until_done().await;
    let (report, info) = (working.stop().await, bench.info().await);
    assert_eq!(
        (report.completed, report.retried, report.archived),
        (JOBS as u64, 0, 0),
        "{answer}"
    );
    assert_eq!((report.lost, log.count("start")), (0, JOBS), "{answer}");
    assert_eq!((info.completed_today, info.archived), (JOBS as u64, 0), "{answer}");
    first
}

/// CASES 27.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_serve_now_fails_no_job_and_work_goes_on_within_five_seconds() {
    let answers = [
        "LOADING Redis is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "BUSY Redis is busy running a script.",
        "CLUSTERDOWN The cluster is down",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    ];
    let firsts = futures_util::future::join_all(answers.map(refused_with)).await;
    for (answer, first) in answers.into_iter().zip(firsts) {
        assert!(first < Duration::from_secs(5), "{answer}: {first:?}");
    }
}
