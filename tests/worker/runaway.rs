//! Handlers that do not return.

use crate::bench::{Bench, HOUR, Log, Task, Working, ms, worker};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use sprag::{Context, State};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

const TIMEOUT: Duration = ms(1_000);
const GRACE: Duration = ms(200);

/// What the gauge shows now.
fn runaways(snapshotter: &Snapshotter) -> f64 {
    let metrics = snapshotter.snapshot().into_vec();
    let gauge = metrics.into_iter().find(|(key, ..)| key.key().name() == "sprag_handlers_runaway");
    match gauge {
        Some((.., DebugValue::Gauge(gauge))) => gauge.into_inner(),
        _ => 0.0,
    }
}

/// Lets a runaway come to its end however the test ends: the runtime waits for it.
struct EndsAtLast(Arc<AtomicBool>);

impl Drop for EndsAtLast {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// CASES 6: one that spins. The gauge is the process's: no other test here leaves a runaway.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_spins_is_left_behind_and_counted_and_its_slot_is_free() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().expect("nobody else installs one");
    let (bench, log) = (Bench::new().await, Log::new());
    let enough = Arc::new(AtomicBool::new(false));
    let _at_last = EndsAtLast(enough.clone());
    let handler = {
        let (log, enough) = (log.clone(), enough.clone());
        move |task: Task, context: Context| {
            let (log, enough) = (log.clone(), enough.clone());
            async move {
                if task.0 == "next" {
                    return Ok(());
                }
                while !enough.load(Ordering::Relaxed) {
                    std::thread::sleep(ms(1));
                }
                log.add(&format!("late, told {:?}", context.cancel_reason()));
                Ok(())
            }
        }
    };
    let builder = worker(&bench.client, &log, handler).concurrency(1).backoff(|_| HOUR);
    let working = Working::start(builder.timeout(TIMEOUT).cancel_grace(GRACE));
    bench.enqueue(&["spins", "next"]).await;
    let started = log.wait("start spins", 1).await;
    let next = log.wait("start next", 1).await - started;
    assert!((TIMEOUT..TIMEOUT + ms(1_500)).contains(&next), "{next:?}");
    bench.until("it to be settled", |info| info.retry == 1 && info.active == 0).await;
    let gauge = runaways(&snapshotter);
    enough.store(true, Ordering::Relaxed);
    assert!((gauge - 1.0).abs() < 0.1, "{gauge}");
    log.wait("late, told Some(Timeout)", 1).await;
    let since = Instant::now();
    while runaways(&snapshotter) > 0.5 {
        assert!(since.elapsed() < Duration::from_secs(5), "it is over and still counted");
        tokio::time::sleep(ms(5)).await;
    }

    let report = working.stop().await;
    assert_eq!((report.completed, report.retried, report.runaways), (1, 1, 1));
    let job = bench.show("spins").await;
    assert_eq!((job.state, job.attempt, job.crash), (State::Retry, 1, 0), "no late success");
    let said = job.errors[0].error.as_deref().expect("a text");
    assert!(said.contains("timed out after 1s") && said.contains("does not stop"), "{said}");
}

/// CASES 6: one that awaits for ever.
#[tokio::test]
async fn a_handler_that_awaits_for_ever_is_dropped_at_its_timeout_and_its_slot_is_free() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |task: Task, _| async move {
        match task.0 == "next" {
            true => Ok(()),
            false => std::future::pending().await,
        }
    };
    let builder = worker(&bench.client, &log, handler).concurrency(1).backoff(|_| HOUR);
    let working = Working::start(builder.timeout(TIMEOUT).cancel_grace(GRACE));
    bench.enqueue(&["waits", "next"]).await;
    let started = log.wait("start waits", 1).await;
    let next = log.wait("start next", 1).await - started;
    assert!((TIMEOUT..TIMEOUT + ms(1_500)).contains(&next), "{next:?}");
    let report = working.stop().await;
    assert_eq!((report.completed, report.retried, report.runaways), (1, 1, 0));
    let job = bench.show("waits").await;
    assert_eq!((job.state, job.attempt), (State::Retry, 1));
}
