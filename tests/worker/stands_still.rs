//! Redis stands still: connections stay open, nothing is answered.

use crate::bench::{Bench, HOUR, Log, Task, Working, ms, worker};
use sprag::{Context, Verdict};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

const LEASE: Duration = ms(2_000);
const JOBS: usize = 50;

/// CASES 13, the long half.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_one_and_a_half_leases_each_job_starts_once_more_after_its_first_holder_was_told() {
    let (bench, log) = (Bench::new().await, Log::new());
    let begun = Arc::new(Mutex::new(HashSet::new()));
    let handler = {
        let log = log.clone();
        move |task: Task, context: Context| {
            let is_first = begun.lock().expect("no panic").insert(task.0.clone());
            let log = log.clone();
            async move {
                let time = if is_first { HOUR } else { ms(200) };
                tokio::select! {
                    () = tokio::time::sleep(time) => log.add(&format!("end {}", task.0)),
                    reason = context.cancelled() => {
                        log.add(&format!("told {}", task.0));
                        return Err(Verdict::retry_in(HOUR, reason.to_string()));
                    }
                }
                Ok(())
            }
        }
    };
    let builder = |client| worker(client, &log, handler.clone()).lease(LEASE).concurrency(JOBS);
    let working =
        [Working::start(builder(&bench.client)), Working::start(builder(&bench.other_client()))];
    bench.enqueue_batch(JOBS).await;
    log.wait("start", JOBS).await;
    bench.server.pause();
    tokio::time::sleep(LEASE * 3 / 2).await;
    bench.server.resume();
    bench.until_done().await;
    Working::stop_all(working).await;

    let events = log.all();
    let place = |event: String| events.iter().position(|e| *e == event);
    for i in 0..JOBS {
        let starts = events.iter().filter(|event| **event == format!("start j-{i}")).count();
        assert_eq!(starts, 2, "j-{i}");
        let (told, end) = (place(format!("told j-{i}")), place(format!("end j-{i}")));
        assert!(told.is_some() && told < end, "j-{i}: {told:?} {end:?}");
    }
    let info = bench.info().await;
    assert_eq!((info.completed_today, info.retry, info.archived), (JOBS as u64, 0, 0));
}
