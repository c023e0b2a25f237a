//! A memory store whose clock stands still, a client, and a log for handlers.

use sprag::{
    Client, Codec, Enqueue, Envelope, Job, JobId, Kind, ManualClock, MemoryStore, QueueName,
    Report, State, Timestamp, Worker,
    store::{EndingReason, JobInfo, WorkerInfo},
    worker::WorkerBuilder,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The job of most tests; what it does is the handler's business.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Task(pub(crate) String);

impl Job for Task {
    const KIND: &'static str = "task";
}

pub(crate) fn task(name: &str) -> Task {
    Task(name.to_owned())
}

pub(crate) struct Bench {
    pub(crate) client: Client,
    pub(crate) clock: ManualClock,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_764_500_000_000));
        Self { client: Client::new(MemoryStore::with_clock(clock.clone())), clock }
    }

    pub(crate) fn worker(&self) -> WorkerBuilder {
        Worker::builder(&self.client).backoff(|_| HOUR)
    }

    /// The job `a` on its way, to be kept when it is done.
    pub(crate) fn enqueue<J: Job>(&self, job: J) -> Enqueue {
        self.client.enqueue(job).id("a").retention(HOUR)
    }

    /// Enqueues `a` as bytes.
    pub(crate) async fn enqueue_raw(&self, kind: &str, version: u32, payload: &[u8], codec: Codec) {
        let kind = Kind::new(kind).expect("kind");
        let job = Envelope::builder(queue(), kind).id(id("a")).retention(HOUR);
        let job = job.payload(payload.to_vec(), codec).version(version).build().expect("valid");
        let outcomes = self.client.enqueue_envelopes(&[job]).await.expect("a store");
        outcomes[0].as_ref().expect("admitted");
    }

    /// What is known of `a`.
    pub(crate) async fn job(&self) -> JobInfo {
        self.client.store().show(&queue(), &id("a")).await.expect("the job is there")
    }

    /// Until the keeper of the worker that runs now has looked at its leases, which it does before it
    /// says that it is there. Its next look is a third of a lease away.
    pub(crate) async fn until_leases_were_looked_at(client: &Client, now: Timestamp) {
        let is_there = |worker: &WorkerInfo| worker.seen_at == now;
        while !client.store().workers().await.expect("workers").iter().any(is_there) {
            tokio::time::sleep(ms(1)).await;
        }
    }

    /// State, attempts, and the last error of `a`.
    pub(crate) async fn told(&self) -> (State, u32, Option<String>) {
        let job = self.job().await;
        let said = job.errors.last().and_then(|failure| failure.error.clone());
        (job.state, job.attempt, said)
    }

    /// Why `a` ended, and the last error.
    pub(crate) async fn ending(&self) -> (EndingReason, String) {
        let job = self.job().await;
        let said = job.errors.last().and_then(|failure| failure.error.clone());
        (job.ending.expect("ended").reason, said.unwrap_or_default())
    }

    /// The result of `a`, as JSON.
    pub(crate) async fn result(&self) -> String {
        let job = self.job().await;
        let result =
            job.result.unwrap_or_else(|| panic!("no result: {:?} {:?}", job.state, job.errors));
        String::from_utf8(result.to_vec()).expect("UTF-8")
    }

    /// In how long `a` is due.
    pub(crate) async fn due_in(&self) -> Duration {
        self.job().await.due_at.expect("due").since(self.clock.now())
    }
}

/// Runs what can be run now.
pub(crate) async fn run(builder: WorkerBuilder) -> Report {
    builder.build().expect("a worker").run_until_empty().await.expect("in memory")
}

pub(crate) fn queue() -> QueueName {
    QueueName::new("default").expect("queue")
}

pub(crate) fn id(name: &str) -> JobId {
    JobId::new(name).expect("id")
}

/// What happened, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, what: impl Into<String>) {
        self.0.lock().expect("no panic in it").push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic in it").clone()
    }
}
