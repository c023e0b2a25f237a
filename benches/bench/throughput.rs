//! Jobs per second: enqueued one by one, 64 at a time, and in batches of 100; drained by workers in
//! one and in four processes whose jobs do nothing; and all the way, enqueued while they are drained.
//!
//! Beside it the floor, with as many jobs per command: from one client, one round trip after another.

use crate::{
    Plan,
    child::{Child, Settings},
    drain,
    jobs::{Task, check_settled, envelopes, queue, until_empty},
    report::{Report, Row},
    server::{Aof, Floor, Server, flush, until_blocked},
};
use redis::aio::MultiplexedConnection;
use sprag::Client;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};
use tokio::task::JoinSet;

struct Measure {
    name: &'static str,
    jobs: usize,
    how: How,
    /// Measured with an append-only file as well.
    headline: bool,
}

#[derive(Clone, Copy)]
enum How {
    /// One by one, by so many producers at once.
    Enqueue(usize),
    /// Many in a call, one call after another.
    Batch(usize),
    Drain {
        processes: usize,
        concurrency: usize,
    },
    /// 64 producers, and one worker process.
    Pipeline,
}

const PRODUCERS: usize = 64;
const WORKERS: usize = 100;

const fn measure(name: &'static str, jobs: usize, how: How, headline: bool) -> Measure {
    Measure { name, jobs, how, headline }
}

const fn drain(processes: usize, concurrency: usize) -> How {
    How::Drain { processes, concurrency }
}

const MEASURES: &[Measure] = &[
    measure("enqueue, one by one", 10_000, How::Enqueue(1), false),
    measure("enqueue, 64 in flight", 50_000, How::Enqueue(PRODUCERS), true),
    measure("enqueue, batches of 100", 100_000, How::Batch(100), true),
    measure("drain, 1 process, concurrency 1", 10_000, drain(1, 1), false),
    measure("drain, 1 process, concurrency 10", 40_000, drain(1, 10), false),
    measure("drain, 1 process, concurrency 100", 100_000, drain(1, WORKERS), true),
    measure("drain, 4 processes, concurrency 1", 20_000, drain(4, 1), false),
    measure("drain, 4 processes, concurrency 10", 60_000, drain(4, 10), false),
    measure("drain, 4 processes, concurrency 100", 100_000, drain(4, WORKERS), false),
    measure("enqueue 64 in flight, drain at once", 50_000, How::Pipeline, true),
];

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    for aof in [Aof::Off, Aof::EverySecond] {
        for measure in MEASURES.iter().filter(|measure| aof == Aof::Off || measure.headline) {
            let jobs = plan.jobs(measure.jobs);
            let (mut ours, mut floor) = (Vec::new(), Vec::new());
            for _ in 0..plan.runs {
                let server = aof.start().await;
                let mut probe = server.connection().await;
                floor.push(measure.how.floor(&mut probe, jobs).await);
                flush(&mut probe).await;
                ours.push(measure.how.rate(server, jobs).await);
            }
            let name = format!("{}{}", measure.name, aof.suffix());
            report.row(Row::new(name, "jobs/s", &ours).beside("floor", &floor));
        }
    }
}

impl How {
    /// Jobs per second.
    async fn rate(self, server: Server, jobs: usize) -> f64 {
        match self {
            Self::Drain { processes, concurrency } => {
                let settings = Settings { concurrency, ..Settings::default() };
                drain::rate(&[server], jobs, processes, &settings).await
            }
            Self::Enqueue(producers) => enqueue(&server, jobs, producers).await,
            Self::Batch(batch) => enqueue_batches(&server, jobs, batch).await,
            Self::Pipeline => pipeline(&server, jobs).await,
        }
    }

    async fn floor(self, probe: &mut MultiplexedConnection, jobs: usize) -> f64 {
        let (batch, in_flight) = match self {
            Self::Enqueue(batch) | Self::Batch(batch) => (batch, batch),
            Self::Drain { processes, concurrency } => (concurrency, concurrency * processes),
            Self::Pipeline => (PRODUCERS, PRODUCERS),
        };
        let floor = Floor { prefix: "sprag:{email}".to_owned(), batch, in_flight };
        let made = envelopes(jobs);
        let mut started = Instant::now();
        for jobs in made.chunks(in_flight) {
            floor.enqueue(probe, jobs).await.expect("the floor");
        }
        if let Self::Drain { .. } = self {
            started = Instant::now();
        }
        if let Self::Drain { .. } | Self::Pipeline = self {
            floor.drain(probe).await.expect("the floor");
        }
        jobs as f64 / started.elapsed().as_secs_f64()
    }
}

async fn enqueue(server: &Server, jobs: usize, producers: usize) -> f64 {
    let client = Client::connect(&server.url()).expect("client");
    let started = Instant::now();
    produce(&client, jobs, producers).await;
    let rate = jobs as f64 / started.elapsed().as_secs_f64();
    work_off(server, &client, jobs).await;
    rate
}

/// So many producers, each with one job at a time.
pub(crate) async fn produce(client: &Client, jobs: usize, producers: usize) {
    let (left, mut all) = (Arc::new(AtomicUsize::new(jobs)), JoinSet::new());
    for _ in 0..producers {
        let (client, left) = (client.clone(), left.clone());
        all.spawn(async move {
            let less = |left: usize| left.checked_sub(1);
            while let Ok(left) = left.fetch_update(Relaxed, Relaxed, less) {
                client.enqueue(Task::new(left as u64)).await.expect("enqueue");
            }
        });
    }
    while let Some(done) = all.join_next().await {
        done.expect("no panic");
    }
}

async fn enqueue_batches(server: &Server, jobs: usize, batch: usize) -> f64 {
    let client = Client::connect(&server.url()).expect("client");
    let started = Instant::now();
    for first in (0..jobs).step_by(batch) {
        let tasks = (first..jobs.min(first + batch)).map(|number| Task::new(number as u64));
        let outcomes = client.enqueue_many(tasks).await.expect("enqueue");
        assert!(outcomes.iter().all(Result::is_ok), "all are admitted");
    }
    let rate = jobs as f64 / started.elapsed().as_secs_f64();
    work_off(server, &client, jobs).await;
    rate
}

/// What was only enqueued has to be there, and to run.
pub(crate) async fn work_off(server: &Server, client: &Client, jobs: usize) {
    let settings = Settings { concurrency: WORKERS, ..Settings::default() };
    let worker = Child::start(&server.url(), &settings);
    until_empty(&mut server.connection().await, &queue()).await;
    assert_eq!(worker.end().await, jobs as u64, "every job ran once");
    check_settled(client, &queue(), jobs as u64).await;
}

async fn pipeline(server: &Server, jobs: usize) -> f64 {
    let client = Client::connect(&server.url()).expect("client");
    let settings = Settings { concurrency: WORKERS, ..Settings::default() };
    let worker = Child::start(&server.url(), &settings);
    until_blocked(server, 1).await;
    let mut probe = server.connection().await;
    let started = Instant::now();
    produce(&client, jobs, PRODUCERS).await;
    until_empty(&mut probe, &queue()).await;
    let rate = jobs as f64 / started.elapsed().as_secs_f64();
    assert_eq!(worker.end().await, jobs as u64, "every job ran once");
    check_settled(&client, &queue(), jobs as u64).await;
    rate
}
