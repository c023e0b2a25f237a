//! What a job costs Redis: CPU per job of enqueue + claim + complete in batches of 1, 16 and 64,
//! beside the floor (the same variadic commands on the same keys, pipelined, without Lua and
//! without a promise) in the same run on the same server; bytes per waiting job; commands per job.
//!
//! `cargo bench --bench cost`. CPU is what the server's INFO says that it used. Machines are noisy:
//! read the ratios, which are medians of the runs. `SPRAG_BENCH_RUNS` (5), `SPRAG_BENCH_JOBS`
//! (30,720) change how long it takes.

#![allow(clippy::print_stdout, reason = "its table is what a bench is for")]

mod common;

use common::{Floor, Server, commands, cpu, queue, setting, used_memory};
use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use sprag::{
    Codec, Envelope, Kind, QueueName, RedisStore, Store, WorkerId,
    store::{Complete, Held},
};
use std::time::Duration;

const PAYLOAD: usize = 220;
/// Jobs in flight at a time, whatever the batch.
const IN_FLIGHT: usize = 256;

/// µs of Redis' CPU per job: enqueue, claim, complete.
#[derive(Clone, Copy, Default)]
struct Cost([f64; 3]);

impl Cost {
    fn total(self) -> f64 {
        self.0.iter().sum()
    }
}

struct Run {
    ours: Cost,
    /// The same, in all.
    floor: f64,
    bytes_per_waiting_job: u64,
    commands_per_job: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (runs, jobs) = (setting("SPRAG_BENCH_RUNS", 5), setting("SPRAG_BENCH_JOBS", 30_720));
    println!(
        "{jobs} jobs of {PAYLOAD} bytes a run, medians of {runs} runs; µs of Redis' CPU per job"
    );
    println!(
        "batch | enqueue + claim + complete = sprag | floor | ratio (min–max) | commands/job | bytes/waiting job"
    );
    for batch in [1, 16, 64] {
        let mut all = Vec::new();
        for _ in 0..runs {
            all.push(run(batch, jobs).await);
        }
        print_row(batch, &all);
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print_row(batch: usize, runs: &[Run]) {
    let part = |i: usize| median(runs.iter().map(|run| run.ours.0[i]));
    let ratios: Vec<_> = runs.iter().map(|run| run.ours.total() / run.floor).collect();
    println!(
        "{batch:5} | {:5.1} + {:5.1} + {:5.1} = {:5.1} | {:5.1} | {:.2} ({:.2}–{:.2}) | {:.2} | {:.0}",
        part(0),
        part(1),
        part(2),
        median(runs.iter().map(|run| run.ours.total())),
        median(runs.iter().map(|run| run.floor)),
        median(ratios.iter().copied()),
        ratios.iter().copied().fold(f64::INFINITY, f64::min),
        ratios.iter().copied().fold(0.0, f64::max),
        median(runs.iter().map(|run| run.commands_per_job)),
        median(runs.iter().map(|run| run.bytes_per_waiting_job as f64)),
    );
}

/// One run on a fresh server: the floor and ours, in turn.
async fn run(batch: usize, jobs: usize) -> Run {
    let server = Server::start().await;
    let mut probe = server.connection().await;
    let prefix = "sprag:{email}".to_owned();
    let floor = Floor { prefix, batch, in_flight: IN_FLIGHT };
    let make = |count| envelopes(&queue(), count);
    let floor = floor.cpu_per_job(&mut probe, jobs, make).await.expect("the floor");
    let _: () = redis::cmd("FLUSHALL").query_async(&mut probe).await.expect("FLUSHALL");
    let store = RedisStore::builder(server.url()).build().expect("store");
    let (ours, bytes_per_waiting_job, commands_per_job) =
        ours(&store, &mut probe, batch, jobs).await;
    Run { ours, floor, bytes_per_waiting_job, commands_per_job }
}

fn envelopes(queue: &QueueName, count: usize) -> Vec<Envelope> {
    let kind = Kind::new("email:welcome").expect("kind");
    let job = || {
        let payload: Vec<u8> = (0..PAYLOAD).map(|_| fastrand::u8(..)).collect();
        Envelope::builder(queue.clone(), kind.clone()).payload(payload, Codec::Raw).build()
    };
    (0..count).map(|_| job().expect("in bounds")).collect()
}

async fn ours(
    store: &RedisStore,
    probe: &mut MultiplexedConnection,
    batch: usize,
    jobs: usize,
) -> (Cost, u64, f64) {
    let queue = queue();
    let worker = WorkerId::new("bench:1").expect("worker");
    let calls = (IN_FLIGHT / batch).max(1);
    let (mut cost, memory) = (Cost::default(), used_memory(probe).await);
    let (start, commands_before) = (cpu(probe).await, commands(probe).await);
    for _ in 0..jobs / IN_FLIGHT {
        let made = envelopes(&queue, IN_FLIGHT);
        let sent = made.chunks(batch).map(|jobs| store.enqueue(&queue, jobs));
        join_all(sent).await.into_iter().for_each(|answer| {
            assert!(answer.expect("enqueue").iter().all(Result::is_ok));
        });
    }
    cost.0[0] = cpu(probe).await - start;
    let bytes = used_memory(probe).await.saturating_sub(memory) / jobs as u64;
    let mut done = 0;
    while done < jobs {
        let before = cpu(probe).await;
        let lease = Duration::from_secs(30);
        let claims = join_all((0..calls).map(|_| store.claim(&queue, &worker, batch, lease))).await;
        let claimed = cpu(probe).await;
        let batches: Vec<Vec<Complete>> = claims
            .into_iter()
            .map(|claim| {
                claim
                    .expect("claim")
                    .jobs
                    .into_iter()
                    .map(|job| {
                        let held = Held { id: job.id, fence: job.fence };
                        Complete { held, result: None }
                    })
                    .collect()
            })
            .collect();
        let settled = join_all(batches.iter().map(|jobs| store.complete(&queue, jobs))).await;
        settled.into_iter().for_each(|answer| {
            assert!(answer.expect("complete").iter().all(Result::is_ok));
        });
        done += batches.iter().map(Vec::len).sum::<usize>();
        cost.0[1] += claimed - before;
        cost.0[2] += cpu(probe).await - claimed;
    }
    let commands = (commands(probe).await - commands_before) / jobs as f64;
    assert_eq!(store.queue(&queue).await.expect("queue").unfinished, 0, "every job was completed");
    (Cost(cost.0.map(|us| us / jobs as f64)), bytes, commands)
}
