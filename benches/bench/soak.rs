//! Does it hold for long? Millions of jobs through one worker while a producer keeps its queue
//! filled, on a server of its own; one job in a hundred fails once. Every 5 s it tells on standard
//! error how far it is, and what this process and Redis have in memory. It misses its bar if a counter
//! has drifted, a key is left over, or this process grew.

use crate::{
    Plan,
    jobs::{Task, queue},
    report::{Report, Row, number},
    server::{Keys, PATIENCE, Server, used_memory},
};
use redis::aio::MultiplexedConnection;
use sprag::{
    Client, Verdict, Worker,
    worker::{Attempt, Shutdown},
};
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

const CONCURRENCY: usize = 100;
/// The producer keeps at most so many jobs waiting.
const WAITING: u64 = 20_000;
const BATCH: u64 = 500;
/// One job of so many fails at its first attempt.
const FAILS: u64 = 100;
/// This process may grow by a tenth and so much, from when a tenth of the jobs is done.
const SLACK_MIB: f64 = 8.0;

/// Jobs that succeeded.
static DONE: AtomicU64 = AtomicU64::new(0);

async fn run_task(task: Task, Attempt(attempt): Attempt) -> Result<(), Verdict> {
    if task.number.is_multiple_of(FAILS) && attempt == 0 {
        return Err(Verdict::retry_in(Duration::from_millis(100), "no luck at first"));
    }
    DONE.fetch_add(1, Relaxed);
    Ok(())
}

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let jobs = plan.soak;
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let worker = Worker::builder(&client).handler(run_task).concurrency(CONCURRENCY);
    let worker = worker.build().expect("worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run_until_shutdown());
    let producer = tokio::spawn(produce(client.clone(), jobs));

    let (mut probe, started) = (server.connection().await, Instant::now());
    let (at_a_tenth, at_the_end) = watch(&client, &mut probe, jobs).await;
    let rate = jobs as f64 / started.elapsed().as_secs_f64();
    producer.await.expect("the producer ends well");
    let told = ended(shutdown, worker).await;
    // Panics at what is wrong, and says what.
    Keys::read(&mut probe, &queue()).await.check();

    report.row(Row::new(
        format!("{} jobs, one in {FAILS} fails once", number(jobs as f64)),
        "jobs/s",
        &[rate],
    ));
    let row = Row::new("this process at the end", "MiB", &[at_the_end]);
    report.row(row.beside("at a tenth", &[at_a_tenth]));
    drifted(&client, jobs, told).await.into_iter().for_each(|wrong| report.require(false, wrong));
    let grew = format!("this process grew from {at_a_tenth:.1} to {at_the_end:.1} MiB");
    report.require(at_the_end <= at_a_tenth * 1.1 + SLACK_MIB, grew);
}

async fn produce(client: Client, jobs: u64) {
    let mut sent = 0;
    while sent < jobs {
        let batch = BATCH.min(jobs - sent);
        if sent + batch - DONE.load(Relaxed) > WAITING {
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        }
        let tasks = (sent..sent + batch).map(Task::new);
        let outcomes = client.enqueue_many(tasks).await.expect("enqueue");
        assert!(outcomes.iter().all(Result::is_ok), "all are admitted");
        sent += batch;
    }
}

/// Tells how far it is until all is done. Answers this process' MiB at a tenth and at the end.
async fn watch(client: &Client, probe: &mut MultiplexedConnection, jobs: u64) -> (f64, f64) {
    eprintln!("    s |      done |  jobs/s | waiting | this process | Redis, MiB");
    let (started, mut told, mut told_at, mut at_a_tenth) = (Instant::now(), 0, 0.0, None);
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (done, seconds) = (DONE.load(Relaxed), started.elapsed().as_secs_f64());
        if done >= jobs / 10 {
            at_a_tenth.get_or_insert_with(resident_mib);
        }
        let over = done >= jobs;
        if over || seconds - told_at >= 5.0 {
            let info = client.inspector().queue(queue()).await.expect("the queue is there");
            eprintln!(
                "{seconds:5.0} | {done:9} | {:7.0} | {:7} | {:12.1} | {:.1}",
                (done - told) as f64 / (seconds - told_at),
                info.unfinished,
                resident_mib(),
                used_memory(probe).await as f64 / f64::from(1 << 20),
            );
            (told, told_at) = (done, seconds);
        }
        if over {
            return (at_a_tenth.unwrap_or_default(), resident_mib());
        }
    }
}

async fn ended(shutdown: Shutdown, worker: JoinHandle<sprag::Report>) -> sprag::Report {
    shutdown.drain();
    let report = tokio::time::timeout(PATIENCE, worker).await.expect("it drains in time");
    report.expect("the worker ends well")
}

/// What the counters say that is not so.
async fn drifted(client: &Client, jobs: u64, report: sprag::Report) -> Vec<String> {
    let inspector = client.inspector();
    let unfinished = inspector.queue(queue()).await.expect("the queue is there").unfinished;
    // It may have run over midnight.
    let days = inspector.days(queue(), 2).await.expect("days");
    let sum = |counter: fn(&sprag::store::Day) -> u64| days.iter().map(counter).sum::<u64>();
    let failed = jobs.div_ceil(FAILS);
    let counters = [
        ("unfinished", unfinished, 0),
        ("completed by the counters of days", sum(|day| day.completed), jobs),
        ("failed by the counters of days", sum(|day| day.failed), failed),
        ("crashed by the counters of days", sum(|day| day.crashed), 0),
        ("completed by the worker's report", report.completed, jobs),
        ("retried by the worker's report", report.retried, failed),
        ("lost by the worker's report", report.lost, 0),
    ];
    let wrong = counters.into_iter().filter(|(_, is, should)| is != should);
    wrong.map(|(what, is, should)| format!("{what}: {is}, should be {should}")).collect()
}

/// Of this process, as Linux tells it; elsewhere 0.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}
