//! Calls a second over each kind of connection, by one task and by 32: the same enqueue of one job
//! everywhere, beside plain TCP; and what a connection of the pool costs beside the shared one.
//!
//! A stock deadpool-redis checkout stands beside both: it sends UNWATCH and PING at every one.

use crate::{
    Plan,
    jobs::{envelope, queue},
    report::{Report, Row},
    server::{
        Server,
        support::{Cluster, Make, Sentinels, TlsServer},
    },
};
use sprag::{
    Namespace, RedisStore, Store,
    store::{Durability, Role},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const CALLS: usize = 20_000;
const TASKS: [usize; 2] = [1, 32];
const PASSWORD: &str = "bench";

/// A kind of connection, and what has to live as long as it.
struct Kind {
    name: &'static str,
    store: Arc<dyn Store>,
    _server: Box<dyn std::any::Any>,
}

impl Kind {
    fn new(name: &'static str, url: &str, server: impl std::any::Any) -> Self {
        let store = RedisStore::builder(url).build().expect("a store");
        Self { name, store: Arc::new(store), _server: Box::new(server) }
    }

    fn durable(self, name: &'static str, durability: Durability) -> Self {
        Self { name, store: self.store.durable(durability), ..self }
    }
}

/// The first is what the others stand beside.
async fn kinds() -> Vec<Kind> {
    let tcp = Server::start_tcp().await;
    let socket = Server::start().await;
    let tls = TlsServer::start().await;
    let sentinels = Sentinels::start().await;
    let cluster = Cluster::start(3, 0).await;
    let rules = Role::ALL.into_iter().flat_map(|role| role.rules(&Namespace::default()));
    let rules = rules.chain(["on".to_owned(), format!(">{PASSWORD}")]);
    let user = Server::setup().tcp().user("app", rules).password("all").start().await;
    let as_user = format!("redis://app:{PASSWORD}@127.0.0.1:{}", user.port());
    let replicated = Sentinels::start().await;
    let second = Duration::from_secs(1);
    let one_replica = Durability::default().replicas(1, second);
    let mut kinds = vec![
        Kind::new("TCP", &tcp.url(), tcp),
        Kind::new("unix socket", &socket.url(), socket),
        Kind::new("TLS", &tls.url(), tls),
        Kind::new("ACL user", &as_user, user),
        Kind::new("sentinel", &sentinels.url(), sentinels),
        Kind::new("cluster", &cluster.url(), cluster),
        Kind::new("", &replicated.url(), replicated).durable("replicas(1)", one_replica),
    ];
    if let Some(make) = Make::Redis8.if_here() {
        let aof = ["--appendonly", "yes", "--appendfsync", "always"];
        let server = Server::setup().make(make).tcp().args(aof).start().await;
        let synced = Durability::default().fsync(second);
        kinds.push(Kind::new("", &server.url(), server).durable("fsync, AOF always", synced));
    }
    kinds
}

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let calls = plan.jobs(CALLS);
    let kinds = kinds().await;
    for tasks in TASKS {
        let mut rates = vec![Vec::new(); kinds.len()];
        for _ in 0..plan.runs {
            for (rates, kind) in rates.iter_mut().zip(&kinds) {
                // Those that wait for a disk or a replica are slow: fewer show as much.
                let calls = if kind.name.contains('(') || kind.name.contains(',') {
                    calls / 10
                } else {
                    calls
                };
                rates.push(enqueues(&kind.store, tasks, calls).await);
            }
        }
        for (kind, rate) in kinds.iter().zip(&rates) {
            let row = Row::new(format!("enqueue, {}: {}", by(tasks), kind.name), "calls/s", rate);
            report.row(if kind.name == kinds[0].name { row } else { row.beside("TCP", &rates[0]) });
        }
    }
    looks(plan, calls, report).await;
}

fn by(tasks: usize) -> String {
    if tasks == 1 { "one task".to_owned() } else { format!("{tasks} tasks") }
}

/// Calls a second, by so many tasks, each of which waits for its answer.
async fn enqueues(store: &Arc<dyn Store>, tasks: usize, calls: usize) -> f64 {
    let store = store.clone();
    rate(tasks, calls, move || {
        let store = store.clone();
        async move {
            let job = envelope(|job| job);
            let answer = store.enqueue(&queue(), std::slice::from_ref(&job)).await;
            assert!(answer.expect("enqueue").iter().all(Result::is_ok), "admitted");
        }
    })
    .await
}

async fn rate<F: Future<Output = ()> + Send + 'static>(
    tasks: usize,
    calls: usize,
    call: impl Fn() -> F + Send + Clone + 'static,
) -> f64 {
    call().await;
    let (started, each) = (Instant::now(), (calls / tasks).max(1));
    let all: Vec<_> = (0..tasks)
        .map(|_| {
            let call = call.clone();
            tokio::spawn(async move {
                for _ in 0..each {
                    call().await;
                }
            })
        })
        .collect();
    for task in all {
        task.await.expect("a task");
    }
    (each * tasks) as f64 / started.elapsed().as_secs_f64()
}

/// Scripts that do next to nothing, and a PING.
async fn looks(plan: &Plan, calls: usize, report: &mut Report) {
    let server = Server::start_tcp().await;
    let store: Arc<dyn Store> = Arc::new(RedisStore::builder(server.url()).build().expect("store"));
    enqueues(&store, 1, 1).await;
    let config = deadpool_redis::Config::from_url(server.url());
    let stock = config.create_pool(Some(deadpool_redis::Runtime::Tokio1)).expect("a pool");
    let plain = server.connection().await;
    for tasks in TASKS {
        let mut rates = [const { Vec::new() }; 4];
        for _ in 0..plan.runs {
            let (shared, pooled) = (store.clone(), store.clone());
            rates[0].push(
                rate(tasks, calls, move || {
                    let store = shared.clone();
                    async move { drop(store.queue(&queue()).await.expect("a queue")) }
                })
                .await,
            );
            rates[1].push(
                rate(tasks, calls, move || {
                    let store = pooled.clone();
                    async move { drop(store.days(&queue(), 1).await.expect("a day")) }
                })
                .await,
            );
            let (plain, stock) = (plain.clone(), stock.clone());
            rates[2].push(
                rate(tasks, calls, move || {
                    let mut redis = plain.clone();
                    async move { redis::cmd("PING").query_async::<()>(&mut redis).await.expect("PONG") }
                })
                .await,
            );
            rates[3].push(
                rate(tasks, calls, move || {
                    let stock = stock.clone();
                    async move {
                        let mut redis = stock.get().await.expect("a connection");
                        redis::cmd("PING").query_async::<()>(&mut redis).await.expect("PONG");
                    }
                })
                .await,
            );
        }
        let by = by(tasks);
        report.row(Row::new(format!("look at a queue, {by}: shared"), "calls/s", &rates[0]));
        let row = Row::new(format!("days of a queue, {by}: pool"), "calls/s", &rates[1]);
        report.row(row.beside("shared", &rates[0]));
        report.row(Row::new(format!("PING, {by}: shared"), "calls/s", &rates[2]));
        let row = Row::new(format!("PING, {by}: stock deadpool-redis"), "calls/s", &rates[3]);
        report.row(row.beside("shared", &rates[2]));
    }
}
