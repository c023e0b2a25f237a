//! Several workers in one process, and one whose owner lets go of it.

use crate::bench::{Bench, HOUR, Log, Task, Working, ms, succeed, worker};
use sprag::{Context, State, Verdict};
use std::time::{Duration, Instant};

#[tokio::test]
async fn of_two_workers_in_a_process_one_is_stopped_and_the_other_goes_on() {
    let (bench, first_log, second_log) = (Bench::new().await, Log::new(), Log::new());
    let first = Working::start(worker(&bench.client, &first_log, succeed));
    let second = Working::start(worker(&bench.client, &second_log, succeed));
    bench.until_blocked(2).await;
    first.stop().await;
    bench.enqueue_batch(20).await;
    second_log.wait("start", 20).await;
    bench.until_done().await;
    assert!(first_log.all().is_empty());
    assert_eq!(second.stop().await.completed, 20);
}

#[tokio::test]
async fn whoever_drops_the_future_of_a_worker_puts_its_jobs_back() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, _| std::future::pending();
    let built = worker(&bench.client, &log, handler).lease(HOUR).concurrency(3).build();
    let running = built.expect("worker").run_until_shutdown();
    bench.enqueue_batch(4).await;
    tokio::select! {
        _ = running => panic!("nobody stopped it"),
        _ = log.wait("start", 3) => {}
    }
    let dropped = Instant::now();
    bench.until("them to be back", |info| info.pending == 4 && info.active == 0).await;
    assert!(dropped.elapsed() < Duration::from_secs(2), "{:?}", dropped.elapsed());
    let job = bench.show("j-0").await;
    assert_eq!((job.state, job.attempt, job.crash), (State::Pending, 0, 0));
    let other = Working::start(worker(&bench.other_client(), &log, succeed));
    bench.until_done().await;
    assert_eq!(other.stop().await.completed, 4);
}

/// CASES 9.
#[tokio::test]
async fn a_handler_stops_its_worker_by_its_context_and_the_job_completes() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, context: Context| async move {
        context.shutdown().drain();
        Ok(())
    };
    let working = Working::start(worker(&bench.client, &log, handler).concurrency(1));
    bench.enqueue_batch(3).await;
    let report = working.ended().await;
    assert_eq!((report.completed, report.requeued, log.count("start")), (1, 0, 1));
    let info = bench.info().await;
    assert_eq!((info.pending, info.active, info.completed_today), (2, 0, 1));
}

/// CASES 8.
#[tokio::test]
async fn a_side_effect_that_checks_the_fence_happens_once() {
    // A system that is written to, and keeps the highest fence it has seen.
    let seen = std::sync::Arc::new(std::sync::Mutex::new((0, Vec::new())));
    let write = {
        let seen = seen.clone();
        move |context: &Context, who: &'static str| {
            let mut seen = seen.lock().expect("no panic");
            let is_newest = context.fence().0 > seen.0;
            if is_newest {
                seen.0 = context.fence().0;
                seen.1.push(who);
            }
        }
    };
    let (bench, log) = (Bench::new().await, Log::new());
    let slow = {
        let write = write.clone();
        move |_: Task, context: Context| {
            // No runtime can stop a thread.
            let write = write.clone();
            let thread = tokio::task::spawn_blocking(move || {
                std::thread::sleep(ms(2_500));
                write(&context, "late");
            });
            async move {
                thread.await.expect("no panic");
                Err(Verdict::retry_in(HOUR, "stopped"))
            }
        }
    };
    let quick = {
        let write = write.clone();
        move |_: Task, context: Context| {
            write(&context, "second");
            async { Ok(()) }
        }
    };
    let first = Working::start(worker(&bench.client, &log, slow).grace(ms(500)));
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    let second = Working::start(worker(&bench.other_client(), &log, quick));
    bench.until_blocked(2).await;
    let stopped = Instant::now();
    let report = first.stop().await;
    assert!(stopped.elapsed() < Duration::from_secs(2), "{:?}", stopped.elapsed());
    assert_eq!((report.requeued, report.completed), (1, 0), "{report:?}");
    bench.until_done().await;
    second.stop().await;
    // The late one has its turn now.
    tokio::time::sleep(ms(2_500).saturating_sub(stopped.elapsed()) + ms(500)).await;
    assert_eq!(seen.lock().expect("no panic").1, ["second"]);
}
