//! What each option of a job adds to its cost: Redis' CPU per job of its whole life in batches of
//! 64, beside a plain job in the same run.

use crate::{
    Plan,
    jobs::{check_settled, envelope, queue},
    report::{self, Report},
    server::{Server, cpu},
};
use futures_util::future::join_all;
use sprag::{
    Client, Envelope, Unique, When, WorkerId,
    model::{EnvelopeBuilder, Mode},
    store::{Claimed, Complete, Held, Pace, Retry},
};
use std::time::Duration;

const JOBS: usize = 12_800;
const BATCH: usize = 64;
const HOUR: Duration = Duration::from_secs(3_600);
const MILLISECOND: Duration = Duration::from_millis(1);

/// A row of the table: a name, what is set, and whether the job fails once.
struct Row {
    name: &'static str,
    set: fn(EnvelopeBuilder, usize) -> EnvelopeBuilder,
    fails: bool,
}

/// The first is what the others stand beside.
const OPTIONS: &[Row] = &[
    Row { name: "plain", set: |job, _| job, fails: false },
    Row { name: "priority", set: |job, i| job.priority((i % 3) as u8 + 3), fails: false },
    Row { name: "max_attempts", set: |job, _| job.max_attempts(5), fails: false },
    Row { name: "unique key", set: |job, i| job.unique(Unique::key(i.to_string())), fails: false },
    Row { name: "throttle", set: |job, i| job.unique(throttle(i)), fails: false },
    Row { name: "retention", set: |job, _| job.retention(HOUR), fails: false },
    Row { name: "remember", set: |job, _| job.remember(HOUR), fails: false },
    Row { name: "deadline", set: |job, _| job.deadline(When::In(HOUR)), fails: false },
    Row { name: "delay 1 ms", set: |job, _| job.run_at(When::In(MILLISECOND)), fails: false },
    Row { name: "fails once", set: |job, _| job, fails: true },
];

fn throttle(i: usize) -> Unique {
    Unique::key(i.to_string()).mode(Mode::Throttle { window: HOUR })
}

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let jobs = plan.jobs(JOBS) / BATCH * BATCH;
    let mut costs = vec![Vec::new(); OPTIONS.len()];
    for _ in 0..plan.runs {
        for (costs, option) in costs.iter_mut().zip(OPTIONS) {
            costs.push(life(option, jobs).await);
        }
    }
    for (option, cost) in OPTIONS.iter().zip(&costs) {
        let name = format!("whole life, batches of {BATCH}: {}", option.name);
        let row = report::Row::new(name, "µs/job", cost);
        let is_first = option.name == OPTIONS[0].name;
        report.row(if is_first { row } else { row.beside(OPTIONS[0].name, &costs[0]) });
    }
}

/// The whole life of so many jobs: enqueued, promoted if need be, claimed, perhaps failed, completed.
async fn life(option: &Row, jobs: usize) -> f64 {
    let server = Server::start().await;
    let mut probe = server.connection().await;
    let client = Client::connect(&server.url()).expect("client");
    let (store, queue) = (client.store(), queue());
    let worker = WorkerId::new("bench:1").expect("worker");
    let made: Vec<Envelope> = (0..jobs).map(|i| envelope(|job| (option.set)(job, i))).collect();
    let before = cpu(&mut probe).await;
    for calls in made.chunks(4 * BATCH) {
        let sent = calls.chunks(BATCH).map(|jobs| store.enqueue(&queue, jobs));
        for answer in join_all(sent).await {
            assert!(answer.expect("enqueue").iter().all(Result::is_ok), "all are admitted");
        }
    }
    let mut done = 0;
    while done < jobs {
        let claim = store.claim(&queue, &worker, BATCH, HOUR).await.expect("claim");
        if claim.jobs.is_empty() {
            store.sweep(&queue, Pace::Shared).await.expect("sweep");
            continue;
        }
        let (fail, good): (Vec<_>, Vec<_>) =
            claim.jobs.iter().partition(|job| option.fails && job.attempt == 0);
        let retry =
            |job: &&Claimed| Retry { held: held(job), delay: MILLISECOND, error: "no".into() };
        let failed: Vec<_> = fail.iter().map(retry).collect();
        let complete = |job: &&Claimed| Complete { held: held(job), result: None };
        let good: Vec<_> = good.iter().map(complete).collect();
        store.retry(&queue, &failed).await.expect("retry");
        store.complete(&queue, &good).await.expect("complete");
        done += good.len();
    }
    let used = cpu(&mut probe).await - before;
    check_settled(&client, &queue, jobs as u64).await;
    used / jobs as f64
}

fn held(job: &Claimed) -> Held {
    Held { id: job.id.clone(), fence: job.fence }
}
