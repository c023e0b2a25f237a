//! What a job costs Redis: µs of CPU of enqueue + claim + complete in batches of 1, 16 and 64, beside
//! the floor in the same run on the same server; commands and round trips per job. Then the same of
//! whole programs: 64 producers through the client, a worker of concurrency 100.
//!
//! CPU is what the server's INFO says that it used.

use crate::{
    Plan,
    child::{Child, Settings},
    jobs::{Task, check_settled, envelopes, queue, until_empty},
    report::{Report, Row},
    server::{Aof, Floor, Server, commands, cpu, flush, round_trips, until_blocked},
};
use futures_util::{StreamExt, future::join_all, stream};
use redis::aio::MultiplexedConnection;
use sprag::{
    Client, Store, WorkerId,
    store::{Complete, Held},
};
use std::time::Duration;

const JOBS: usize = 30_720;
/// Jobs in flight at a time, whatever the batch.
const IN_FLIGHT: usize = 256;
const PRODUCERS: usize = 64;

/// What a run used per job.
struct Used {
    /// µs of enqueue, claim, complete.
    parts: [f64; 3],
    commands: f64,
    round_trips: f64,
}

impl Used {
    fn total(&self) -> f64 {
        self.parts.iter().sum()
    }
}

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    // Rounds are whole.
    let jobs = plan.jobs(JOBS) / IN_FLIGHT * IN_FLIGHT;
    for aof in [Aof::Off, Aof::EverySecond] {
        for batch in [1, 16, 64] {
            let (mut all, mut floors) = (Vec::new(), Vec::new());
            for _ in 0..plan.runs {
                let (ours, floor) = in_batches(aof, batch, jobs).await;
                all.push(ours);
                floors.push(floor);
            }
            tell(report, aof, batch, &all, &floors);
        }
    }
    let mut all = Vec::new();
    for _ in 0..plan.runs {
        all.push(through_client_and_worker(jobs).await);
    }
    let name = "64 producers, worker of concurrency 100: ";
    tell_row(report, format!("{name}whole life"), "µs/job", &all, Used::total);
    tell_row(report, format!("{name}commands"), "/job", &all, |used| used.commands);
    tell_row(report, format!("{name}round trips"), "/job", &all, |used| used.round_trips);
}

fn tell(report: &mut Report, aof: Aof, batch: usize, all: &[Used], floors: &[f64]) {
    let name = |what| format!("{what}, batches of {batch}{}", aof.suffix());
    let totals: Vec<_> = all.iter().map(Used::total).collect();
    report.row(Row::new(name("whole life"), "µs/job", &totals).beside("floor", floors));
    if aof == Aof::EverySecond {
        return;
    }
    for (i, part) in ["enqueue", "claim", "complete"].into_iter().enumerate() {
        tell_row(report, name(part), "µs/job", all, |used| used.parts[i]);
    }
    tell_row(report, name("commands"), "/job", all, |used| used.commands);
    tell_row(report, name("round trips"), "/job", all, |used| used.round_trips);
}

fn tell_row(
    report: &mut Report,
    name: String,
    unit: &'static str,
    all: &[Used],
    figure: impl Fn(&Used) -> f64,
) {
    report.row(Row::new(name, unit, &all.iter().map(figure).collect::<Vec<_>>()));
}

/// One run on a fresh server: the floor and ours, in turn.
async fn in_batches(aof: Aof, batch: usize, jobs: usize) -> (Used, f64) {
    let server = aof.start().await;
    let mut probe = server.connection().await;
    let floor = Floor { prefix: "sprag:{email}".to_owned(), batch, in_flight: IN_FLIGHT };
    let floor = floor.cpu_per_job(&mut probe, jobs, envelopes).await.expect("the floor");
    flush(&mut probe).await;
    let client = Client::connect(&server.url()).expect("client");
    let (commands_before, trips) = (commands(&mut probe).await, round_trips(&mut probe).await);
    let (mut parts, mut asked) = ([0.0; 3], 0);
    let store = &**client.store();
    parts[0] = enqueue(store, &mut probe, batch, jobs).await;
    let mut done = 0;
    while done < jobs {
        let (claimed, [claim, complete]) = claim_and_complete(store, &mut probe, batch).await;
        parts[1] += claim;
        parts[2] += complete;
        (done, asked) = (done + claimed, asked + 3);
    }
    let commands = commands(&mut probe).await - commands_before;
    // Ours, without the questions asked here, each of which is one.
    let trips = round_trips(&mut probe).await - trips - f64::from(asked + 4);
    check_settled(&client, &queue(), jobs as u64).await;
    let per_job = |all: f64| all / jobs as f64;
    let parts = parts.map(per_job);
    (Used { parts, commands: per_job(commands), round_trips: per_job(trips) }, floor)
}

async fn enqueue(
    store: &dyn Store,
    probe: &mut MultiplexedConnection,
    batch: usize,
    jobs: usize,
) -> f64 {
    let (queue, start) = (queue(), cpu(probe).await);
    for _ in 0..jobs / IN_FLIGHT {
        let made = envelopes(IN_FLIGHT);
        let sent = made.chunks(batch).map(|jobs| store.enqueue(&queue, jobs));
        for answer in join_all(sent).await {
            assert!(answer.expect("enqueue").iter().all(Result::is_ok), "all are admitted");
        }
    }
    cpu(probe).await - start
}

/// A round of claims in flight together, then all of it completed: how many, and what each took.
async fn claim_and_complete(
    store: &dyn Store,
    probe: &mut MultiplexedConnection,
    batch: usize,
) -> (usize, [f64; 2]) {
    let (queue, worker) = (queue(), WorkerId::new("bench:1").expect("worker"));
    let (before, lease) = (cpu(probe).await, Duration::from_secs(30));
    let claims = (0..IN_FLIGHT / batch).map(|_| store.claim(&queue, &worker, batch, lease));
    let claims = join_all(claims).await;
    let claimed = cpu(probe).await;
    let batches = claims.into_iter().map(|claim| {
        let jobs = claim.expect("claim").jobs.into_iter();
        let done = jobs.map(|job| Held { id: job.id, fence: job.fence });
        done.map(|held| Complete { held, result: None }).collect::<Vec<_>>()
    });
    let batches: Vec<_> = batches.collect();
    for answer in join_all(batches.iter().map(|jobs| store.complete(&queue, jobs))).await {
        assert!(answer.expect("complete").iter().all(Result::is_ok), "all are ours");
    }
    let done = batches.iter().map(Vec::len).sum();
    (done, [claimed - before, cpu(probe).await - claimed])
}

/// Producers, and a worker process at the same time.
async fn through_client_and_worker(jobs: usize) -> Used {
    let server = Server::start().await;
    let (client, mut probe) =
        (Client::connect(&server.url()).expect("client"), server.connection().await);
    let settings = Settings { concurrency: 100, ..Settings::default() };
    let worker = Child::start(&server.url(), &settings);
    until_blocked(&server, 1).await;
    let before = cpu(&mut probe).await;
    let (commands_before, trips) = (commands(&mut probe).await, round_trips(&mut probe).await);
    let calls = (0..jobs).map(|number| client.enqueue(Task::new(number as u64)).into_future());
    let mut answers = stream::iter(calls).buffer_unordered(PRODUCERS);
    while let Some(answer) = answers.next().await {
        answer.expect("enqueue");
    }
    let asked = f64::from(until_empty(&mut probe, &queue()).await);
    let used = cpu(&mut probe).await - before;
    let commands = commands(&mut probe).await - commands_before - asked;
    // Three more are what is asked in this line and the two before it.
    let trips = round_trips(&mut probe).await - trips - asked - 3.0;
    assert_eq!(worker.end().await, jobs as u64, "every job ran once");
    check_settled(&client, &queue(), jobs as u64).await;
    let per_job = |all: f64| all / jobs as f64;
    Used {
        parts: [per_job(used), 0.0, 0.0],
        commands: per_job(commands),
        round_trips: per_job(trips),
    }
}
