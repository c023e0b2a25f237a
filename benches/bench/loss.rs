//! What a server that dies takes along: jobs whose enqueue was answered and which are not there when it,
//! or its successor, is back. By what the server writes, and by what the enqueue waits for.

use crate::{
    Plan,
    jobs::{envelope, queue},
    report::{Report, Row},
    server::{
        Server,
        support::{Sentinels, key},
    },
};
use redis::AsyncCommands;
use sprag::{RedisStore, Store, store::Durability};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const TASKS: usize = 32;
const SECOND: Duration = Duration::from_secs(1);

/// What a server writes to disk.
const WRITES: [(&str, &[&str]); 4] = [
    ("nothing on disk", &[]),
    ("snapshots only", &["--save", "3600 1"]),
    ("AOF everysec", &["--appendonly", "yes", "--appendfsync", "everysec"]),
    ("AOF always", &["--appendonly", "yes", "--appendfsync", "always"]),
];

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    for (name, args) in WRITES {
        let mut runs = Vec::new();
        for _ in 0..plan.runs {
            let mut server = Server::with_args(args).await;
            let acked = Acked::of(&store(&server.url()));
            tokio::time::sleep(SECOND).await;
            server.kill();
            let acked = acked.end().await;
            server.restart().await;
            runs.push(lost(&acked, &mut server.connection().await).await);
        }
        rows(report, &format!("kill -9, {name}"), &runs);
    }
    for (name, replicas, kills) in [
        ("kill -9 of the master", 0, true),
        ("kill -9 of the master, replicas(1)", 1, true),
        ("SENTINEL FAILOVER under load", 0, false),
        ("SENTINEL FAILOVER under load, replicas(1)", 1, false),
    ] {
        let mut runs = Vec::new();
        for _ in 0..plan.runs {
            runs.push(failed_over(replicas, kills).await);
        }
        rows(report, name, &runs);
    }
}

fn rows(report: &mut Report, name: &str, runs: &[(f64, f64)]) {
    let of = |part: fn(&(f64, f64)) -> f64| runs.iter().map(part).collect::<Vec<_>>();
    report.row(Row::new(format!("{name}: answered"), "jobs", &of(|run| run.0)));
    report.row(Row::new(format!("{name}: lost"), "jobs", &of(|run| run.1)));
}

fn store(url: &str) -> Arc<dyn Store> {
    let store = RedisStore::builder(url).repeat_budget(Duration::ZERO).build();
    Arc::new(store.expect("a store"))
}

/// Producers, and the ids of the jobs that they were told are enqueued.
struct Acked {
    over: Arc<AtomicBool>,
    ids: Arc<Mutex<Vec<String>>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Acked {
    fn of(store: &Arc<dyn Store>) -> Self {
        let (over, ids) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let produce = |_| tokio::spawn(produce(store.clone(), over.clone(), ids.clone()));
        let tasks = (0..TASKS).map(produce).collect();
        Self { over, ids, tasks }
    }

    async fn end(self) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("a producer");
        }
        std::mem::take(&mut self.ids.lock().expect("no panic"))
    }
}

async fn produce(store: Arc<dyn Store>, over: Arc<AtomicBool>, ids: Arc<Mutex<Vec<String>>>) {
    while !over.load(Ordering::Relaxed) {
        let job = envelope(|job| job);
        match store.enqueue(&queue(), std::slice::from_ref(&job)).await {
            Ok(told) if told[0].is_ok() => {
                ids.lock().expect("no panic").push(job.id().to_string());
            }
            // Whatever became of it: nobody was told that it is there.
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// How many were answered, and how many of these are not there.
async fn lost(acked: &[String], redis: &mut redis::aio::MultiplexedConnection) -> (f64, f64) {
    let mut there = 0;
    for ids in acked.chunks(1_000) {
        let found: Vec<Option<Vec<u8>>> =
            redis.hmget(key(&queue(), "jobs"), ids).await.expect("HMGET");
        there += found.iter().flatten().count();
    }
    (acked.len() as f64, (acked.len() - there) as f64)
}

async fn failed_over(replicas: u8, kills: bool) -> (f64, f64) {
    let mut all = Sentinels::start().await;
    let mut store = store(&all.url());
    if replicas > 0 {
        store = store.durable(Durability::default().replicas(replicas, SECOND));
    }
    let acked = Acked::of(&store);
    tokio::time::sleep(SECOND).await;
    let master = if kills {
        let old = all.kill_master().await;
        all.replaced(old).await
    } else {
        all.fail_over().await
    };
    tokio::time::sleep(2 * SECOND).await;
    let acked = acked.end().await;
    lost(&acked, &mut all.servers[master].connection().await).await
}
