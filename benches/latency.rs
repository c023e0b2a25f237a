//! How long from enqueue to start, and what an idle worker costs.
//!
//! Jobs come at a fixed rate whether or not those before them have started, and each is measured
//! from when it *should* have been sent: no wait is left out. Beside it, in turns of a second, one
//! LPUSH and BLPOP of two plain connections on the same server does the same: the least that there
//! can be. How late the sender itself is stands in both, and is told apart.
//!
//! `cargo bench --bench latency`. `SPRAG_LATENCY_SECONDS` (20, of each) changes how long it takes. It
//! fails if an idle worker sends more than 2 commands a second, and 1 for each further queue.

#![allow(clippy::print_stdout, reason = "its table is what a bench is for")]

mod common;

use common::{PATIENCE, Server, setting};
use hdrhistogram::Histogram;
use redis::aio::MultiplexedConnection;
use sprag::{
    Client, Job, Worker,
    worker::{Data, Shutdown},
};
use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{Arc, LazyLock, Mutex},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

const PER_SECOND: u32 = 100;
const IDLE: Duration = Duration::from_secs(10);
const RAW: &str = "raw";

/// Carries the moment at which it should have been sent.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Ping(u64);

impl Job for Ping {
    const KIND: &'static str = "ping";
}

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

fn nanos(moment: Instant) -> u64 {
    u64::try_from(moment.duration_since(*EPOCH).as_nanos()).expect("within 500 years")
}

/// Waits since the moments at which they should have begun, in ns.
struct Waits(Mutex<Histogram<u64>>);

impl Waits {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Histogram::new(3).expect("3 digits"))))
    }

    fn over(&self, since: u64) {
        let wait = nanos(Instant::now()).saturating_sub(since);
        self.0.lock().expect("no panic").record(wait).expect("it grows");
    }

    async fn reach(&self, count: u64) {
        let started = Instant::now();
        while self.0.lock().expect("no panic").len() < count {
            assert!(started.elapsed() < PATIENCE, "some never came");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The median, the 99th of a hundred, the longest, in µs.
    fn told(&self) -> [f64; 3] {
        let waits = self.0.lock().expect("no panic");
        let of = [waits.value_at_quantile(0.5), waits.value_at_quantile(0.99), waits.max()];
        of.map(|nanos| nanos as f64 / 1e3)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    LazyLock::force(&EPOCH);
    from_enqueue_to_start(setting("SPRAG_LATENCY_SECONDS", 20) as u64).await;
    let mut ok = true;
    println!("\ncommands that an idle worker sends | a second | bar");
    for queues in [1, 4] {
        let sent = idle(queues).await;
        let rate = sent.values().sum::<u64>() as f64 / IDLE.as_secs_f64();
        let bar = 2.0 + (queues - 1) as f64;
        println!("{queues} queues: {sent:?} | {rate:.1} | {bar:.0}");
        ok &= rate <= bar;
    }
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn from_enqueue_to_start(seconds: u64) {
    let server = Server::start().await;
    let (ours, raw, late) = (Waits::new(), Waits::new(), Waits::new());
    let worker = start_worker(&server, ours.clone()).await;
    tokio::spawn(pop(server.connection().await, raw.clone()));
    let client = Client::connect(&server.url()).expect("client");
    let push = server.connection().await;
    for turn in 1..=seconds {
        let count = turn * u64::from(PER_SECOND);
        let mut due = a_second_of_moments(late.clone());
        while let Some(moment) = due.recv().await {
            let enqueue = client.enqueue(Ping(moment));
            tokio::spawn(async move { enqueue.await.expect("enqueue") });
        }
        ours.reach(count).await;
        let mut due = a_second_of_moments(late.clone());
        while let Some(moment) = due.recv().await {
            let mut push = push.clone();
            tokio::spawn(async move {
                let push_it = redis::cmd("LPUSH").arg(RAW).arg(moment).to_owned();
                push_it.query_async::<()>(&mut push).await.expect("LPUSH");
            });
        }
        raw.reach(count).await;
    }
    worker.drain();
    let (ours, raw, late) = (ours.told(), raw.told(), late.told());
    println!("from enqueue to start at {PER_SECOND} jobs/s, {seconds} s each, in turns; µs");
    println!("              |   p50 |   p99 |   max");
    for (name, [p50, p99, max]) in [("sprag", ours), ("LPUSH + BLPOP", raw), ("sender late", late)]
    {
        println!("{name:13} | {p50:5.0} | {p99:5.0} | {max:5.0}");
    }
    let ratio = |i: usize| ours[i] / raw[i];
    println!("ratio         | {:5.2} | {:5.2} | {:5.2}", ratio(0), ratio(1), ratio(2));
}

async fn start_worker(server: &Server, waits: Arc<Waits>) -> Shutdown {
    async fn run(ping: Ping, waits: Data<Arc<Waits>>) -> Result<(), std::io::Error> {
        waits.over(ping.0);
        Ok(())
    }
    let client = Client::connect(&server.url()).expect("client");
    let worker = Worker::builder(&client).data(waits).handler(run).build().expect("worker");
    let shutdown = worker.shutdown();
    tokio::spawn(worker.run_until_shutdown());
    until_blocked(server).await;
    shutdown
}

/// Waits until a worker has nothing to do.
async fn until_blocked(server: &Server) {
    let (mut probe, started) = (server.connection().await, Instant::now());
    while common::info(&mut probe, "clients").await.get("blocked_clients") != Some(1) {
        assert!(started.elapsed() < PATIENCE, "the worker never blocks");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn pop(mut connection: MultiplexedConnection, waits: Arc<Waits>) {
    loop {
        let pop = redis::cmd("BLPOP").arg(RAW).arg(1).to_owned();
        match pop.query_async::<Option<(String, u64)>>(&mut connection).await {
            Ok(Some((_, moment))) => waits.over(moment),
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

/// A second of moments, each told when it has come: by a thread, for tokio's timer counts in ms.
fn a_second_of_moments(late: Arc<Waits>) -> mpsc::UnboundedReceiver<u64> {
    let (tell, told) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let start = Instant::now() + Duration::from_millis(10);
        for i in 0..PER_SECOND {
            let moment = start + Duration::from_secs(1) / PER_SECOND * i;
            thread::sleep(moment.saturating_duration_since(Instant::now()));
            late.over(nanos(moment));
            tell.send(nanos(moment)).expect("it listens");
        }
    });
    told
}

/// What an idle worker of so many queues sends in ten seconds, by command.
async fn idle(queues: usize) -> BTreeMap<String, u64> {
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let mut worker =
        Worker::builder(&client).handler(|_: Ping| async { Ok::<_, std::io::Error>(()) });
    for i in 0..queues {
        worker = worker.queue(format!("queue-{i}"));
    }
    let worker = worker.build().expect("worker");
    let shutdown = worker.shutdown();
    tokio::spawn(worker.run_until_shutdown());
    until_blocked(&server).await;
    // Past its first seconds, in which it learns what is there.
    tokio::time::sleep(Duration::from_secs(2)).await;

    let sent = server.sent_within(IDLE).await;
    shutdown.drain();
    sent
}
