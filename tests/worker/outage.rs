//! Redis goes away, and comes back.

use crate::{
    bench::{Bench, Log, Task, Working, client, ms, succeed, worker},
    process::Process,
    support::Proxy,
};
use sprag::Context;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

const SECOND: Duration = ms(1_000);
/// How long a worker blocks on its wake tokens.
const BLOCK: Duration = ms(1_500);
/// The longest back-off between tries to connect, and the second after it.
const BACK_WITHIN: Duration = ms(3_000);
const JOBS: usize = 1_000;

/// A thousand jobs whose handlers wait for a sign, all of them running.
async fn thousand_running(
    bench: &Bench,
    proxy: &Proxy,
    log: &Log,
    lease: Duration,
) -> (Working, Arc<Semaphore>) {
    let go = Arc::new(Semaphore::new(0));
    let handler = {
        let go = go.clone();
        move |_: Task, _: Context| {
            let go = go.clone();
            async move {
                go.acquire().await.expect("open").forget();
                Ok(())
            }
        }
    };
    let builder = worker(&client(&proxy.url()), log, handler).lease(lease).concurrency(JOBS);
    let working = Working::start(builder);
    bench.enqueue_batch(JOBS).await;
    log.wait("start", JOBS).await;
    (working, go)
}

/// All is settled within lease + sweep, each job once, and nothing is left.
async fn all_done(bench: &Bench, since: Instant, lease: Duration) {
    bench.until("nothing to be active", |info| info.active == 0).await;
    let healed = since.elapsed();
    assert!(healed < lease + BLOCK + SECOND, "{healed:?}");
    bench.until_done().await;
    let info = bench.info().await;
    assert_eq!((info.completed_today, info.archived), (JOBS as u64, 0));
    for key in ["jobs", "holder", "active"] {
        let left: u64 = bench.run(&["EXISTS", &format!("sprag:{{default}}:{key}")]).await;
        assert_eq!(left, 0, "{key}");
    }
}

/// CASES 2: only settling fails; the leases, shorter than that, are extended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_jobs_that_cannot_be_settled_for_ten_seconds_are_settled_then_and_run_once() {
    let (bench, log, lease) = (Bench::new().await, Log::new(), 3 * SECOND);
    let proxy = Proxy::in_front_of(&bench.server).await;
    let (working, go) = thousand_running(&bench, &proxy, &log, lease).await;
    proxy.on("complete").times(u64::MAX).answer_error("MISCONF cannot write to disk");
    go.add_permits(JOBS);
    tokio::time::sleep(10 * SECOND).await;
    assert!(proxy.struck("complete") > 0);
    assert_eq!(bench.info().await.active, JOBS as u64);
    proxy.disarm();
    all_done(&bench, Instant::now(), lease).await;
    let report = working.stop().await;
    assert_eq!((report.completed, report.lost, log.count("start")), (JOBS as u64, 0, JOBS));
}

/// CASES 2: all fails, for less than a lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_jobs_that_end_while_redis_is_away_for_less_than_a_lease_run_once() {
    let (bench, log, lease) = (Bench::new().await, Log::new(), 30 * SECOND);
    let proxy = Proxy::in_front_of(&bench.server).await;
    let (working, go) = thousand_running(&bench, &proxy, &log, lease).await;
    proxy.refuse(true).await;
    proxy.cut_all();
    go.add_permits(JOBS);
    tokio::time::sleep(10 * SECOND).await;
    proxy.refuse(false).await;
    all_done(&bench, Instant::now(), BACK_WITHIN).await;
    let report = working.stop().await;
    assert_eq!((report.completed, report.lost, log.count("start")), (JOBS as u64, 0, JOBS));
}

/// CASES 2: all fails, for longer than a lease. Nobody who was not away is there to take the jobs, and
/// who was away settles first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_jobs_that_end_while_redis_is_away_for_two_leases_are_settled_then_and_run_once()
{
    let (bench, log, lease) = (Bench::new().await, Log::new(), 2 * SECOND);
    let proxy = Proxy::in_front_of(&bench.server).await;
    let (working, go) = thousand_running(&bench, &proxy, &log, lease).await;
    proxy.refuse(true).await;
    proxy.cut_all();
    go.add_permits(JOBS);
    tokio::time::sleep(2 * lease).await;
    proxy.refuse(false).await;
    all_done(&bench, Instant::now(), lease + BACK_WITHIN).await;
    let report = working.stop().await;
    assert_eq!((report.completed, report.lost, log.count("start")), (JOBS as u64, 0, JOBS));
}

/// CASES 22.
async fn work_flows_again_after(away: Duration) {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let working = Working::start(worker(&client(&proxy.url()), &log, succeed));
    bench.until_blocked(1).await;
    proxy.refuse(true).await;
    proxy.cut_all();
    bench.enqueue(&["a"]).await;
    tokio::time::sleep(away).await;
    proxy.refuse(false).await;
    let back = Instant::now();
    let delay = log.wait("start a", 1).await.saturating_duration_since(back);
    assert!(delay < BACK_WITHIN, "{delay:?}");
    bench.until_done().await;
    // And it is woken again, not only looking.
    for name in ["b", "c"] {
        bench.until_blocked(1).await;
        let enqueued = Instant::now();
        bench.enqueue(&[name]).await;
        let delay = log.wait(&format!("start {name}"), 1).await.saturating_duration_since(enqueued);
        assert!(delay < SECOND, "{delay:?}");
    }
    assert_eq!(working.stop().await.completed, 3);
}

/// CASES 22.
#[tokio::test]
async fn work_flows_again_after_half_a_block_time() {
    work_flows_again_after(BLOCK / 2).await;
}

/// CASES 22.
#[tokio::test]
async fn work_flows_again_after_a_block_time() {
    work_flows_again_after(BLOCK).await;
}

/// CASES 22.
#[tokio::test]
async fn work_flows_again_after_three_block_times() {
    work_flows_again_after(3 * BLOCK).await;
}

/// CASES 22.
#[tokio::test]
async fn work_flows_again_after_ten_block_times() {
    work_flows_again_after(10 * BLOCK).await;
}

/// CASES 22.
#[tokio::test]
async fn while_redis_is_away_a_worker_neither_storms_it_nor_its_log() {
    let bench = Bench::new().await;
    let proxy = Proxy::in_front_of(&bench.server).await;
    let process = Process::with_log(&proxy.url());
    bench.enqueue(&["a"]).await;
    bench.started_elsewhere().await;
    bench.until_done().await;
    bench.until_blocked(1).await;
    bench.until_listening().await;
    // Of a server without an append-only file it warns, once.
    let told = process.log_lines();
    assert!(told.iter().all(|line| line.contains("append-only")) && told.len() < 2, "{told:#?}");
    // Every connection is lost at its first word.
    proxy.on("client setinfo").times(u64::MAX).close_before();
    let before = proxy.accepted();
    proxy.cut_all();
    tokio::time::sleep(10 * SECOND).await;
    let tries = proxy.accepted() - before;
    let lines = process.log_lines();
    assert!((5..=20).contains(&tries), "{tries} tries to connect in 10 s: {lines:#?}");
    // One every three seconds, and at the beginning what was lost by it.
    assert!((1..=7).contains(&lines.len()), "{lines:#?}");
    proxy.disarm();
    bench.until_blocked(1).await;
}

/// What an aborted worker could not tell the store is lost to it, and its report says so.
#[tokio::test]
async fn a_settlement_that_an_abort_gives_up_is_counted_as_lost() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let go = Arc::new(Semaphore::new(0));
    let waits = go.clone();
    let handler = move |_: Task, _: Context| {
        let go = waits.clone();
        async move {
            go.acquire().await.expect("open").forget();
            Ok(())
        }
    };
    let working = Working::start(worker(&client(&proxy.url()), &log, handler));
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    proxy.refuse(true).await;
    proxy.cut_all();
    go.add_permits(1);
    working.shutdown.abort();
    let report = working.ended().await;
    assert_eq!((report.completed, report.lost), (0, 1), "{report:?}");
}
