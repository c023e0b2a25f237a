//! Leases: kept while a job runs, lost when somebody takes the job away.

use crate::bench::{Answer, Bench, HOUR, Log, Task, Working, ms, succeed, worker};
use futures_util::future::BoxFuture;
use sprag::{Context, State, store::Operation};

const LEASE: std::time::Duration = ms(600);

/// Says when it is told to stop, and then claims success all the same.
fn stubborn(log: &Log) -> impl Fn(Task, Context) -> BoxFuture<'static, Answer> + Clone + use<> {
    let log = log.clone();
    move |_, context| {
        let log = log.clone();
        Box::pin(async move {
            context.cancelled().await;
            log.add("told");
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_job_of_many_leases_runs_once() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, context: Context| async move {
        tokio::select! {
            () = tokio::time::sleep(ms(2_000)) => Ok(()),
            _ = context.cancelled() => Err(sprag::Verdict::discard("told to stop")),
        }
    };
    let first = Working::start(worker(&bench.client, &log, handler).lease(LEASE));
    let second = Working::start(worker(&bench.other_client(), &log, handler).lease(LEASE));
    bench.enqueue(&["a"]).await;
    bench.until_done().await;
    let reports = Working::stop_all([first, second]).await;
    assert_eq!(log.all(), ["start a"]);
    assert_eq!(reports.iter().map(|report| report.completed).sum::<u64>(), 1);
    assert_eq!(reports.iter().map(|report| report.lost).sum::<u64>(), 0);
}

/// CASES 16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_never_awaits_keeps_its_lease() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, _| async {
        let until = std::time::Instant::now() + 3 * LEASE;
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
        Ok(())
    };
    let working = Working::start(worker(&bench.client, &log, handler).lease(LEASE));
    bench.enqueue(&["a"]).await;
    bench.until_done().await;
    let report = working.stop().await;
    assert_eq!((log.all(), report.completed, report.lost), (vec!["start a".to_owned()], 1, 0));
}

/// CASES 5.
#[tokio::test]
async fn a_cancelled_job_is_told_to_stop_and_its_late_success_changes_nothing() {
    let (bench, log) = (Bench::new().await, Log::new());
    let working = Working::start(worker(&bench.client, &log, stubborn(&log)).lease(LEASE));
    bench.task("a").retention(HOUR).await.expect("admitted");
    log.wait("start a", 1).await;
    bench.operate(Operation::Cancel, "a").await;
    log.wait("told", 1).await;
    let report = working.stop().await;
    assert_eq!((report.completed, report.lost), (0, 1));
    let (job, info) = (bench.show("a").await, bench.info().await);
    assert_eq!((job.state, job.result), (State::Cancelled, None));
    assert_eq!((info.unfinished, info.completed_today), (0, 0));
    assert_eq!(log.count("start"), 1);
}

/// CASES 15, by the worker.
#[tokio::test]
async fn a_reclaimed_job_is_told_to_stop_and_its_late_success_leaves_the_new_holder_alone() {
    let (bench, log) = (Bench::new().await, Log::new());
    let builder = worker(&bench.client, &log, stubborn(&log)).lease(LEASE);
    let first = Working::start(builder.grace(ms(1)));
    bench.task("a").retention(HOUR).await.expect("admitted");
    log.wait("start a", 1).await;
    bench.take_away("a").await;
    // The same worker may be the one that runs it again: either way the first run is told.
    log.wait("told", 1).await;
    log.wait("start a", 2).await;
    let job = bench.show("a").await;
    assert_eq!((job.state, job.crash), (State::Active, 1));
    let report = first.stop().await;
    assert_eq!((report.completed, report.lost), (1, 1), "the second run, and the first one's");
    assert_eq!(bench.show("a").await.state, State::Completed);
}

/// CASES 13, the short half.
#[tokio::test]
async fn a_server_that_stands_still_for_half_a_lease_causes_no_second_start() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, _| async {
        tokio::time::sleep(ms(1_500)).await;
        Ok(())
    };
    let builder = |client| worker(client, &log, handler).lease(ms(1_000)).concurrency(50);
    let working =
        [Working::start(builder(&bench.client)), Working::start(builder(&bench.other_client()))];
    bench.enqueue_batch(50).await;
    log.wait("start", 50).await;
    bench.server.pause();
    tokio::time::sleep(ms(500)).await;
    bench.server.resume();
    bench.until_done().await;
    let reports = Working::stop_all(working).await;
    assert_eq!(reports.iter().map(|report| report.lost).sum::<u64>(), 0);
    assert_eq!(log.count("start"), 50);
}

#[tokio::test]
async fn the_slot_of_a_lost_job_is_free_again() {
    let (bench, log) = (Bench::new().await, Log::new());
    let builder = worker(&bench.client, &log, stubborn(&log)).lease(LEASE).concurrency(1);
    let working = Working::start(builder.grace(ms(1)));
    bench.enqueue(&["a", "b"]).await;
    log.wait("start a", 1).await;
    bench.operate(Operation::Cancel, "a").await;
    log.wait("start b", 1).await;
    working.shutdown.drain();
    let _other = Working::start(worker(&bench.other_client(), &log, succeed));
    bench.until_done().await;
}
