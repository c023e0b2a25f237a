//! A server, clients, workers in this process, and a log of what their handlers did.

use crate::support::{PATIENCE, Server};
use redis::{FromRedisValue, RedisWrite, aio::MultiplexedConnection};
use sprag::{
    Client, Context, Enqueue, Job, JobId, QueueName, RedisStore, Report, Verdict, Worker,
    store::{JobInfo, QueueInfo},
    worker::{Shutdown, WorkerBuilder},
};
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinHandle};

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The job of every test; what it does is the handler's business.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Task(pub(crate) String);

impl Job for Task {
    const KIND: &'static str = "task";
}

pub(crate) struct Bench {
    pub(crate) server: Server,
    pub(crate) client: Client,
    redis: MultiplexedConnection,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let server = Server::start().await;
        let client = client(&server.url());
        Self { redis: server.connection().await, server, client }
    }

    /// A client with connections of its own.
    pub(crate) fn other_client(&self) -> Client {
        client(&self.server.url())
    }

    /// A job on its way; its id is its name.
    pub(crate) fn task(&self, name: &str) -> Enqueue {
        self.client.enqueue(Task(name.to_owned())).id(id(name))
    }

    pub(crate) async fn enqueue(&self, names: &[&str]) {
        for name in names {
            self.task(name).await.expect("admitted");
        }
    }

    /// `count` jobs, `j-0` and on, in one call.
    pub(crate) async fn enqueue_batch(&self, count: usize) {
        let tasks = (0..count).map(|i| self.task(&format!("j-{i}")).envelope().expect("valid"));
        let outcomes = self.client.enqueue_envelopes(&tasks.collect::<Vec<_>>()).await;
        assert!(outcomes.expect("enqueue").iter().all(Result::is_ok));
    }

    pub(crate) async fn show(&self, name: &str) -> JobInfo {
        self.client.store().show(&default_queue(), &id(name)).await.expect("the job is there")
    }

    pub(crate) async fn info(&self) -> QueueInfo {
        self.client.store().queue(&default_queue()).await.expect("the queue is there")
    }

    /// Waits until the queue's counters are so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&QueueInfo) -> bool) {
        let started = Instant::now();
        loop {
            let info = self.info().await;
            if is_so(&info) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "waited for {what}: {info:?}");
            tokio::time::sleep(ms(5)).await;
        }
    }

    /// Until the job is in quarantine.
    pub(crate) async fn until_quarantined(&self, name: &str) {
        while self.show(name).await.state != sprag::State::Quarantined {
            tokio::time::sleep(ms(20)).await;
        }
    }

    pub(crate) async fn until_done(&self) {
        self.until("all to be finished", |info| info.unfinished == 0).await;
    }

    /// Waits until so many workers block on their wake tokens.
    pub(crate) async fn until_blocked(&self, workers: u64) {
        let started = Instant::now();
        loop {
            let info: redis::InfoDict = self.run(&["INFO", "clients"]).await;
            if info.get("blocked_clients") == Some(workers) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{workers} workers never blocked at once");
            tokio::time::sleep(ms(2)).await;
        }
    }

    /// Runs a command past the library.
    pub(crate) async fn run<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut cmd = redis::Cmd::new();
        words.iter().for_each(|word| cmd.write_arg(word.as_bytes()));
        cmd.query_async(&mut self.redis.clone()).await.expect("a command")
    }

    /// How often clients sent this command so far; scripts do not send it.
    pub(crate) async fn sent(&self, command: &str) -> u64 {
        let stats: String = self.run(&["INFO", "commandstats"]).await;
        let prefix = format!("cmdstat_{command}:calls=");
        let count = stats.lines().find_map(|line| line.strip_prefix(&prefix));
        count.map_or(0, |rest| rest.split(',').next().expect("a field").parse().expect("a number"))
    }
}

pub(crate) fn client(url: &str) -> Client {
    Client::new(RedisStore::builder(url).build().expect("store"))
}

pub(crate) fn default_queue() -> QueueName {
    QueueName::new("default").expect("queue")
}

pub(crate) fn id(name: &str) -> JobId {
    JobId::new(name).expect("id")
}

/// What a handler answers.
pub(crate) type Answer = Result<(), Verdict>;

/// A worker of one handler, which starts by saying so to the log.
pub(crate) fn worker<Fut: Future<Output = Answer> + Send + 'static>(
    client: &Client,
    log: &Log,
    handler: impl Fn(Task, Context) -> Fut + Clone + Send + Sync + 'static,
) -> WorkerBuilder {
    let log = log.clone();
    Worker::builder(client).backoff(|_| ms(1)).handler(move |task: Task, context: Context| {
        let (log, handler) = (log.clone(), handler.clone());
        async move {
            log.add(&format!("start {}", task.0));
            handler(task, context).await
        }
    })
}

/// A handler that does nothing.
pub(crate) async fn succeed(_: Task, _: Context) -> Answer {
    Ok(())
}

/// A handler that ends when it is told to, and calls that a success.
pub(crate) async fn until_cancelled(_: Task, context: Context) -> Answer {
    context.cancelled().await;
    Ok(())
}

/// A worker at work; ends by [`stop`](Working::stop), or with the test.
pub(crate) struct Working {
    pub(crate) shutdown: Shutdown,
    task: JoinHandle<Report>,
}

impl Working {
    pub(crate) fn start(builder: WorkerBuilder) -> Self {
        let worker = builder.build().expect("worker");
        let shutdown = worker.shutdown();
        Self { shutdown, task: tokio::spawn(worker.run_until_shutdown()) }
    }

    /// Drains, and waits for the end.
    pub(crate) async fn stop(self) -> Report {
        self.shutdown.drain();
        self.ended().await
    }

    /// Drains all at once, and waits for their ends.
    pub(crate) async fn stop_all(workers: impl IntoIterator<Item = Self>) -> Vec<Report> {
        let workers: Vec<_> = workers.into_iter().collect();
        workers.iter().for_each(|worker| worker.shutdown.drain());
        futures_util::future::join_all(workers.into_iter().map(Self::ended)).await
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for an end that something else brings about.
    pub(crate) async fn ended(self) -> Report {
        tokio::time::timeout(PATIENCE, self.task).await.expect("in time").expect("no panic")
    }
}

/// What happened, in order, and when.
#[derive(Clone, Debug)]
pub(crate) struct Log(Arc<watch::Sender<Vec<(String, Instant)>>>);

impl Log {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    pub(crate) fn add(&self, what: &str) {
        self.0.send_modify(|events| events.push((what.to_owned(), Instant::now())));
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.borrow().iter().map(|(what, _)| what.clone()).collect()
    }

    /// How many events begin so.
    pub(crate) fn count(&self, prefix: &str) -> usize {
        self.0.borrow().iter().filter(|(what, _)| what.starts_with(prefix)).count()
    }

    /// Waits until so many events begin so; when the last of them happened.
    pub(crate) async fn wait(&self, prefix: &str, count: usize) -> Instant {
        let mut events = self.0.subscribe();
        let nth = |events: &Vec<(String, Instant)>| {
            let mut matching = events.iter().filter(|(what, _)| what.starts_with(prefix));
            matching.nth(count - 1).map(|(_, at)| *at)
        };
        let there = events.wait_for(|events| nth(events).is_some());
        match tokio::time::timeout(PATIENCE, there).await {
            Ok(events) => nth(&events.expect("the log holds the sender")).expect("just seen"),
            Err(_) => panic!("waited for {count} × {prefix:?}: {:?}", self.all()),
        }
    }
}
