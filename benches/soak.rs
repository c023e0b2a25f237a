//! Does it hold for long? Millions of jobs through one worker while a producer keeps its queue
//! filled, on a server of its own; one job in a hundred fails once. Every 5 s it tells how far it
//! is, and what this process and Redis have in memory. It fails if a counter has drifted, a key is
//! left over, or this process grew.
//!
//! `cargo bench --bench soak`. `SPRAG_SOAK_JOBS` (2,000,000) changes how long it takes.

#![allow(clippy::print_stdout, reason = "its lines are what a bench is for")]

mod common;

use common::{Keys, PATIENCE, Server, queue, setting, used_memory};
use redis::aio::MultiplexedConnection;
use sprag::{
    Client, Job, Report, Verdict, Worker,
    worker::{Attempt, Shutdown},
};
use std::{
    process::ExitCode,
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

#[derive(serde::Serialize, serde::Deserialize)]
struct Task {
    number: u64,
    text: String,
}

impl Job for Task {
    const KIND: &'static str = "email:welcome";
    const QUEUE: &'static str = "email";
}

/// Jobs that succeeded.
static DONE: AtomicU64 = AtomicU64::new(0);

async fn run(task: Task, Attempt(attempt): Attempt) -> Result<(), Verdict> {
    if task.number.is_multiple_of(FAILS) && attempt == 0 {
        return Err(Verdict::retry_in(Duration::from_millis(100), "no luck at first"));
    }
    DONE.fetch_add(1, Relaxed);
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    let jobs = setting("SPRAG_SOAK_JOBS", 2_000_000) as u64;
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let worker = Worker::builder(&client).handler(run).concurrency(CONCURRENCY);
    let worker = worker.build().expect("worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run_until_shutdown());
    let producer = tokio::spawn(produce(client.clone(), jobs));

    let mut probe = server.connection().await;
    let (at_a_tenth, at_the_end) = watch(&client, &mut probe, jobs).await;
    producer.await.expect("the producer ends well");
    let report = ended(shutdown, worker).await;
    let mut wrong = drifted(&client, jobs, report).await;
    if at_the_end > at_a_tenth * 1.1 + SLACK_MIB {
        wrong.push(format!("this process grew from {at_a_tenth:.1} to {at_the_end:.1} MiB"));
    }
    println!("{report:?}");
    // Panics at what is wrong, and says what.
    Keys::read(&mut probe, &queue()).await.check();
    if wrong.is_empty() {
        println!(
            "nothing drifted; this process: {at_a_tenth:.1} MiB at a tenth, {at_the_end:.1} MiB at the end"
        );
        return ExitCode::SUCCESS;
    }
    wrong.iter().for_each(|wrong| println!("WRONG: {wrong}"));
    ExitCode::FAILURE
}

async fn produce(client: Client, jobs: u64) {
    let mut sent = 0;
    while sent < jobs {
        let batch = BATCH.min(jobs - sent);
        if sent + batch - DONE.load(Relaxed) > WAITING {
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        }
        let text = "x".repeat(200);
        let tasks = (sent..sent + batch).map(|number| Task { number, text: text.clone() });
        let outcomes = client.enqueue_many(tasks).await.expect("enqueue");
        assert!(outcomes.iter().all(Result::is_ok), "all are admitted");
        sent += batch;
    }
}

/// Tells how far it is until all is done. Answers this process' MiB at a tenth and at the end.
async fn watch(client: &Client, probe: &mut MultiplexedConnection, jobs: u64) -> (f64, f64) {
    println!("    s |      done |  jobs/s | waiting | this process | Redis, MiB");
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
            println!(
                "{seconds:5.0} | {done:9} | {:7.0} | {:7} | {:12.1} | {:.1}",
                (done - told) as f64 / (seconds - told_at),
                info.unfinished,
                resident_mib(),
                used_memory(probe).await as f64 / f64::from(1 << 20),
            );
            (told, told_at) = (done, seconds);
        }
        if over {
            println!("all: {:.0} jobs/s", done as f64 / seconds);
            return (at_a_tenth.unwrap_or_default(), resident_mib());
        }
    }
}

async fn ended(shutdown: Shutdown, worker: JoinHandle<Report>) -> Report {
    shutdown.drain();
    let report = tokio::time::timeout(PATIENCE, worker).await.expect("it drains in time");
    report.expect("the worker ends well")
}

/// What the counters say that is not so.
async fn drifted(client: &Client, jobs: u64, report: Report) -> Vec<String> {
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
