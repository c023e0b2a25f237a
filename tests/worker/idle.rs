//! Idle workers cost next to nothing.

use crate::bench::{Bench, HOUR, Log, Working, succeed, worker};
use std::time::Duration;

/// CASES 26.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_idle_workers_send_two_commands_a_second_each_at_most() {
    let (bench, log) = (Bench::new().await, Log::new());
    bench.task("later").delay(Duration::from_secs(60)).await.expect("admitted");
    let _working: Vec<_> =
        (0..10).map(|_| Working::start(worker(&bench.other_client(), &log, succeed))).collect();
    bench.until_blocked(10).await;
    // Two heartbeats each.
    let seconds = 10;
    let sent = bench.server.sent_within(Duration::from_secs(seconds)).await;
    let all: u64 = sent.values().sum();
    assert!(all <= 2 * 10 * seconds, "{sent:?} in {seconds} s");
    assert!(all > 0 && log.all().is_empty(), "they are there, and idle");
}

/// CASES 18.
#[tokio::test]
async fn a_job_without_a_handler_is_put_off_without_an_attempt_until_a_worker_knows_it() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Unknown;
    impl sprag::Job for Unknown {
        const KIND: &'static str = "unknown";
    }
    let (bench, log) = (Bench::new().await, Log::new());
    let old = Working::start(worker(&bench.client, &log, succeed));
    let job = bench.client.enqueue(Unknown).id(crate::bench::id("a")).retention(HOUR);
    job.await.expect("admitted");
    bench.until("it to be put off", |info| info.scheduled == 1).await;
    let job = bench.show("a").await;
    assert_eq!((job.attempt, job.crash, job.errors.len()), (0, 0, 0));
    let report = old.stop().await;
    assert_eq!((report.snoozed, report.unhandled, report.completed), (1, 1, 0), "once, no loop");

    let heard = log.clone();
    let new = Working::start(worker(&bench.client, &log, succeed).handler(move |_: Unknown| {
        heard.add("known");
        async { Ok::<_, std::io::Error>(()) }
    }));
    log.wait("known", 1).await;
    bench.until_done().await;
    assert_eq!((bench.show("a").await.attempt, new.stop().await.completed), (0, 1));
}
