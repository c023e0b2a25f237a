//! How long from enqueue to start.
//!
//! Jobs come at a fixed rate whether or not those before them have started, and each is measured
//! from when it *should* have been sent: no wait is left out. Beside it, in turns of a second, one
//! LPUSH and BLPOP of two plain connections on the same server does the same: the least that there
//! can be. How late the sender itself is stands in both, and is told apart.

use crate::{
    Plan,
    jobs::check_settled,
    report::{Report, Row, number},
    server::{PATIENCE, Server, until_blocked},
};
use hdrhistogram::Histogram;
use redis::aio::MultiplexedConnection;
use sprag::{
    Client, Job, QueueName, Worker,
    worker::{Data, Shutdown},
};
use std::{
    sync::{Arc, LazyLock, Mutex},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Jobs a second, and how many seconds of them each side has in a run.
const RATES: [(u32, u32); 2] = [(100, 10), (1_000, 5)];
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

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    LazyLock::force(&EPOCH);
    for (rate, seconds) in RATES {
        let runs = plan.runs;
        let mut all = Vec::new();
        for _ in 0..runs {
            all.push(from_enqueue_to_start(rate, plan.pick(seconds, 1)).await);
        }
        for (i, what) in ["p50", "p99", "max"].into_iter().enumerate() {
            let of = |who: usize| all.iter().map(|run| run[who][i]).collect::<Vec<_>>();
            let name = |what| format!("enqueue to start, {} jobs/s: {what}", number(rate.into()));
            report.row(Row::new(name(what), "µs", &of(0)).beside("LPUSH, BLPOP", &of(1)));
            if what == "p99" {
                report.row(Row::new(name("the sender is late, p99"), "µs", &of(2)));
            }
        }
    }
}

/// Ours, the raw one, and how late the sender was: p50, p99 and max of each, in µs.
async fn from_enqueue_to_start(rate: u32, seconds: u32) -> [[f64; 3]; 3] {
    let server = Server::start().await;
    let (ours, raw, late) = (Waits::new(), Waits::new(), Waits::new());
    let worker = start_worker(&server, ours.clone()).await;
    tokio::spawn(pop(server.connection().await, raw.clone()));
    let client = Client::connect(&server.url()).expect("client");
    let push = server.connection().await;
    warm_up(&client, &push, [&ours, &raw]).await;
    for turn in 1..=seconds {
        let count = u64::from(turn * rate);
        let mut due = a_second_of_moments(rate, late.clone());
        while let Some(moment) = due.recv().await {
            let enqueue = client.enqueue(Ping(moment));
            tokio::spawn(async move { enqueue.await.expect("enqueue") });
        }
        ours.reach(count).await;
        let mut due = a_second_of_moments(rate, late.clone());
        while let Some(moment) = due.recv().await {
            tokio::spawn(push_one(push.clone(), moment));
        }
        raw.reach(count).await;
    }
    worker.0.drain();
    worker.1.await.expect("the worker ends well");
    let queue = QueueName::new(Ping::QUEUE).expect("queue");
    check_settled(&client, &queue, u64::from(seconds * rate) + 1).await;
    [ours.told(), raw.told(), late.told()]
}

/// One of each, not counted: connections are made and scripts loaded.
async fn warm_up(client: &Client, push: &MultiplexedConnection, all: [&Waits; 2]) {
    let now = nanos(Instant::now());
    client.enqueue(Ping(now)).await.expect("enqueue");
    push_one(push.clone(), now).await;
    for waits in all {
        waits.reach(1).await;
        waits.0.lock().expect("no panic").reset();
    }
}

async fn push_one(mut push: MultiplexedConnection, moment: u64) {
    let command = redis::cmd("LPUSH").arg(RAW).arg(moment).to_owned();
    command.query_async::<()>(&mut push).await.expect("LPUSH");
}

async fn start_worker(
    server: &Server,
    waits: Arc<Waits>,
) -> (Shutdown, tokio::task::JoinHandle<sprag::Report>) {
    async fn run(ping: Ping, waits: Data<Arc<Waits>>) -> Result<(), std::convert::Infallible> {
        waits.over(ping.0);
        Ok(())
    }
    let client = Client::connect(&server.url()).expect("client");
    let worker = Worker::builder(&client).data(waits).handler(run).build().expect("worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run_until_shutdown());
    until_blocked(server, 1).await;
    (shutdown, worker)
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
fn a_second_of_moments(rate: u32, late: Arc<Waits>) -> mpsc::UnboundedReceiver<u64> {
    let (tell, told) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let start = Instant::now() + Duration::from_millis(10);
        for i in 0..rate {
            let moment = start + Duration::from_secs(1) / rate * i;
            thread::sleep(moment.saturating_duration_since(Instant::now()));
            late.over(nanos(moment));
            tell.send(nanos(moment)).expect("it listens");
        }
    });
    told
}
