//! What each option of a job adds to its cost: Redis' CPU per job of its whole life in batches of
//! 64, beside a plain job in the same run; and how long the operator's verbs take on a deep queue.
//!
//! `cargo bench --bench options`. CPU is what the server's INFO says that it used: read the
//! differences, which are medians of the runs. `SPRAG_BENCH_RUNS` (3), `SPRAG_BENCH_JOBS` (12,800)
//! `SPRAG_BENCH_DEPTH` (200,000 waiting jobs) and `SPRAG_BENCH_BACKLOG` (20,000 jobs of each kind)
//! change how long it takes.

#![allow(clippy::print_stdout, reason = "its table is what a bench is for")]

mod common;

use common::{Server, cpu, queue, setting};
use futures_util::future::join_all;
use sprag::{
    Codec, Envelope, Kind, RedisStore, State, Store, Unique, When, WorkerId,
    model::{EnvelopeBuilder, Mode},
    store::{Complete, Held, Operation, Pace, Retry},
};
use std::time::{Duration, Instant};

const BATCH: usize = 64;
const HOUR: Duration = Duration::from_secs(3600);

/// A row of the table: a name, what is set, and whether the job fails once.
struct Row {
    name: &'static str,
    set: fn(EnvelopeBuilder, usize) -> EnvelopeBuilder,
    fails: bool,
}

const OPTIONS: &[Row] = &[
    Row { name: "plain", set: |job, _| job, fails: false },
    Row { name: "priority", set: |job, i| job.priority((i % 3) as u8 + 3), fails: false },
    Row { name: "max_attempts", set: |job, _| job.max_attempts(5), fails: false },
    Row { name: "unique key", set: |job, i| job.unique(Unique::key(i.to_string())), fails: false },
    Row { name: "throttle", set: |job, i| job.unique(throttle(i)), fails: false },
    Row { name: "retention", set: |job, _| job.retention(HOUR), fails: false },
    Row { name: "remember", set: |job, _| job.remember(HOUR), fails: false },
    Row { name: "deadline", set: |job, _| job.deadline(When::In(HOUR)), fails: false },
    Row {
        name: "delay 1 ms",
        set: |job, _| job.run_at(When::In(Duration::from_millis(1))),
        fails: false,
    },
    Row { name: "fails once", set: |job, _| job, fails: true },
];

fn throttle(i: usize) -> Unique {
    Unique::key(i.to_string()).mode(Mode::Throttle { window: HOUR })
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (runs, jobs) = (setting("SPRAG_BENCH_RUNS", 3), setting("SPRAG_BENCH_JOBS", 12_800));
    println!(
        "{jobs} jobs a run in batches of {BATCH}, medians of {runs} runs; µs of Redis' CPU per job"
    );
    println!("option | whole life | more than plain");
    let mut plain = 0.0;
    for option in OPTIONS {
        let mut costs = Vec::new();
        for _ in 0..runs {
            costs.push(life(option, jobs).await);
        }
        costs.sort_by(f64::total_cmp);
        let cost = costs[costs.len() / 2];
        if option.name == "plain" {
            plain = cost;
        }
        println!("{:12} | {cost:5.1} | {:+.1}", option.name, cost - plain);
    }
    deep(setting("SPRAG_BENCH_DEPTH", 200_000)).await;
    backlog(setting("SPRAG_BENCH_BACKLOG", 20_000)).await;
}

fn job(i: usize, set: fn(EnvelopeBuilder, usize) -> EnvelopeBuilder) -> Envelope {
    let kind = Kind::new("email:welcome").expect("kind");
    let payload: Vec<u8> = (0..220).map(|_| fastrand::u8(..)).collect();
    let job = Envelope::builder(queue(), kind).payload(payload, Codec::Raw);
    set(job, i).build().expect("in bounds")
}

/// The whole life of so many jobs: enqueued, promoted if need be, claimed, perhaps failed, completed.
async fn life(option: &Row, jobs: usize) -> f64 {
    let server = Server::start().await;
    let mut probe = server.connection().await;
    let store = RedisStore::builder(server.url()).build().expect("store");
    let (queue, worker) = (queue(), WorkerId::new("bench:1").expect("worker"));
    let made: Vec<_> = (0..jobs).map(|i| job(i, option.set)).collect();
    let before = cpu(&mut probe).await;
    for calls in made.chunks(4 * BATCH) {
        let sent = calls.chunks(BATCH).map(|jobs| store.enqueue(&queue, jobs));
        join_all(sent).await.into_iter().for_each(|answer| {
            assert!(answer.expect("enqueue").iter().all(Result::is_ok));
        });
    }
    let mut done = 0;
    while done < jobs {
        let claim = store.claim(&queue, &worker, BATCH, HOUR).await.expect("claim");
        if claim.jobs.is_empty() {
            store.sweep(&queue, Pace::Shared).await.expect("sweep");
            continue;
        }
        let held = |id: &sprag::JobId, fence| Held { id: id.clone(), fence };
        let (fail, good): (Vec<_>, Vec<_>) =
            claim.jobs.iter().partition(|job| option.fails && job.attempt == 0);
        let delay = Duration::from_millis(1);
        let failed: Vec<_> = fail
            .iter()
            .map(|job| Retry { held: held(&job.id, job.fence), delay, error: "no".into() })
            .collect();
        let good: Vec<_> = good
            .iter()
            .map(|job| Complete { held: held(&job.id, job.fence), result: None })
            .collect();
        store.retry(&queue, &failed).await.expect("retry");
        done += good.len();
        store.complete(&queue, &good).await.expect("complete");
    }
    (cpu(&mut probe).await - before) / jobs as f64
}

/// Verbs on a queue with so many waiting jobs: none may depend on the depth.
async fn deep(depth: usize) {
    let server = Server::start().await;
    let store = RedisStore::builder(server.url()).build().expect("store");
    let (queue, worker) = (queue(), WorkerId::new("bench:1").expect("worker"));
    let mut ids = Vec::new();
    for first in (0..depth).step_by(1_000) {
        let jobs: Vec<_> = (first..first + 1_000).map(|i| job(i, |job, _| job)).collect();
        ids.extend(jobs.iter().map(|job| job.id().clone()));
        store.enqueue(&queue, &jobs).await.expect("enqueue");
    }
    println!(
        "\none call on a queue of {depth} waiting jobs, medians of 101, ms with the round trip"
    );
    let middle = |i: usize| ids[depth / 2 + i].clone();
    macro_rules! timed {
        ($name:literal, $i:ident => $call:expr) => {{
            let mut times = Vec::new();
            for $i in 0..101 {
                let start = Instant::now();
                $call;
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            println!("{:22} | {:.2} | max {:.2}", $name, times[50], times[100]);
        }};
    }
    timed!("show", i => store.show(&queue, &middle(i)).await.expect("show"));
    timed!("queue", _i => store.queue(&queue).await.expect("queue"));
    timed!("list 100", _i => store.list(&queue, State::Pending, None, None, 100).await.expect("list"));
    timed!("cancel in the middle", i => store.operate(&queue, Operation::Cancel, &[middle(i)]).await.expect("cancel"));
    timed!("delete in the middle", i => store.operate(&queue, Operation::Delete, &[middle(200 + i)]).await.expect("delete"));
    timed!("claim one", _i => store.claim(&queue, &worker, 1, HOUR).await.expect("claim"));
    timed!("sweep", _i => store.sweep(&queue, Pace::Now).await.expect("sweep"));
}

/// A great many leases that ran out, jobs that are due and jobs to evict, all at once: worked off in
/// slices, of which none holds Redis up.
async fn backlog(jobs: usize) {
    let server = Server::start().await;
    let mut probe = server.connection().await;
    let store = RedisStore::builder(server.url()).build().expect("store");
    let (queue, worker) = (queue(), WorkerId::new("bench:1").expect("worker"));
    let millisecond = Duration::from_millis(1);
    for first in (0..jobs).step_by(1_000) {
        let kept: Vec<_> = (first..first + 1_000)
            .map(|i| job(i, |job, _| job.retention(Duration::from_millis(1))))
            .collect();
        store.enqueue(&queue, &kept).await.expect("enqueue");
        let claim = store.claim(&queue, &worker, 1_000, HOUR).await.expect("claim");
        let done: Vec<_> = claim
            .jobs
            .iter()
            .map(|job| Complete {
                held: Held { id: job.id.clone(), fence: job.fence },
                result: None,
            })
            .collect();
        store.complete(&queue, &done).await.expect("complete");
        let held: Vec<_> = (first..first + 1_000).map(|i| job(i, |job, _| job)).collect();
        store.enqueue(&queue, &held).await.expect("enqueue");
        store.claim(&queue, &worker, 1_000, Duration::from_millis(100)).await.expect("claim");
        let due: Vec<_> = (first..first + 1_000)
            .map(|i| job(i, |job, _| job.run_at(When::In(Duration::from_millis(1)))))
            .collect();
        store.enqueue(&queue, &due).await.expect("enqueue");
    }
    tokio::time::sleep(Duration::from_millis(100) + millisecond).await;
    // Calls over 10 ms are in its slow log; what came before the sweep is not asked for.
    let _: () = redis::cmd("SLOWLOG").arg("RESET").query_async(&mut probe).await.expect("SLOWLOG");
    let start = Instant::now();
    let swept = store.sweep(&queue, Pace::Now).await.expect("sweep");
    let took = start.elapsed();
    let slow: u64 =
        redis::cmd("SLOWLOG").arg("LEN").query_async(&mut probe).await.expect("SLOWLOG");
    println!(
        "\na sweep of {} reclaimed + {} promoted + {} evicted: {took:.2?}, {slow} script calls over 10 ms",
        swept.reclaimed, swept.promoted, swept.evicted
    );
}
