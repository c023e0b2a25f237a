//! For tests of code that enqueues, and of handlers: a store in memory with a clock in hand. They need
//! neither Redis nor sleep.
//!
//! ```
//! use sprag::{Job, Verdict, assert_enqueued, assert_not_enqueued, testing::Kit};
//! use std::time::Duration;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct SendWelcome { user: u64 }
//! impl Job for SendWelcome {
//!     const KIND: &'static str = "email:welcome";
//! }
//!
//! /// What is tested: a producer …
//! async fn sign_up(client: &sprag::Client, user: u64) -> Result<(), sprag::StoreError> {
//!     client.enqueue(SendWelcome { user }).delay(Duration::from_secs(3600)).await?;
//!     Ok(())
//! }
//!
//! /// … and a handler.
//! async fn send_welcome(job: SendWelcome) -> Result<(), Verdict> {
//!     if job.user == 0 { Err(Verdict::discard("nobody")) } else { Ok(()) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), sprag::StoreError> {
//! let kit = Kit::new();
//! let mut worker = kit.worker().handler(send_welcome).build()?;
//!
//! sign_up(kit.client(), 7).await?;
//! assert_enqueued!(kit, SendWelcome { user: 7 });
//! assert_eq!(kit.drain(&mut worker).await.completed, 0); // it is due in an hour
//!
//! kit.advance(Duration::from_secs(3600)).await;
//! assert_eq!(kit.drain(&mut worker).await.completed, 1);
//! assert_not_enqueued!(kit, SendWelcome { .. });
//! # Ok(()) }
//! ```

use crate::{
    Client, Inspector, Job, ManualClock, MemoryStore, Store,
    job::Payload,
    model::{Envelope, JobId, QueueName, State, Timestamp},
    worker::{Report, Worker, WorkerBuilder},
};
use std::{sync::Arc, time::Duration};

/// When a kit's clock starts: 2026-01-01T00:00:00Z, so that a test sees the same at every run.
const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// Jobs that are looked up at a time.
const PAGE: usize = 1_000;

/// A store in memory, a clock that only the test moves, and a client.
#[derive(Debug, Clone)]
pub struct Kit {
    client: Client,
    clock: ManualClock,
}

/// A job that was enqueued and is not finished.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<J> {
    /// What a handler will be given.
    pub job: J,
    /// Where it is.
    pub queue: QueueName,
    /// Its id.
    pub id: JobId,
    /// `pending`, `scheduled`, `active` or `retry`.
    pub state: State,
    /// When it is due, if that is later.
    pub due_at: Option<Timestamp>,
    /// All that was enqueued: options, headers.
    pub envelope: Envelope,
}

impl Kit {
    /// An empty store; its clock stands at the beginning of 2026.
    pub fn new() -> Self {
        let clock = ManualClock::at(START);
        Self { client: Client::new(MemoryStore::with_clock(clock.clone())), clock }
    }

    /// The client to hand to the code that is tested.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Looks at queues and jobs, and steers them.
    pub fn inspector(&self) -> Inspector {
        self.client.inspector()
    }

    /// Starts a worker on this store.
    pub fn worker(&self) -> WorkerBuilder {
        Worker::builder(&self.client)
    }

    /// What the clock says.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Runs what is due, one job after another, also what handlers enqueue meanwhile, until nothing is
    /// left but what is due later. Says what was done in this call. The clock stands still.
    pub async fn drain(&self, worker: &mut Worker) -> Report {
        worker.run_until_empty().await.expect("a store in memory is there")
    }

    /// Moves the clock on, and does what time has made due: jobs become pending, expire, are
    /// forgotten. Nothing runs before the next [`drain`](Kit::drain).
    pub async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        for queue in self.queues().await {
            let swept = self.store().sweep(&queue, crate::store::Pace::Now).await;
            swept.expect("a store in memory is there");
        }
    }

    /// The unfinished jobs of this type in all queues, in the order in which they were enqueued.
    ///
    /// # Panics
    /// The payload of one of them cannot be decoded.
    pub async fn enqueued<J: Job>(&self) -> Vec<Found<J>> {
        let mut found = Vec::new();
        for queue in self.queues().await {
            for state in State::ALL.into_iter().filter(|state| state.is_unfinished()) {
                found.extend(self.of_queue::<J>(&queue, state).await);
            }
        }
        found.sort_by(|(at, a), (bt, b)| (at, &a.id).cmp(&(bt, &b.id)));
        found.into_iter().map(|(_, found)| found).collect()
    }

    /// Those of them that fit; for [`assert_enqueued!`](crate::assert_enqueued).
    #[doc(hidden)]
    pub async fn matching<J: Job>(&self, fits: impl Fn(&J) -> bool) -> (usize, String) {
        let all = self.enqueued::<J>().await;
        let fitting = all.iter().filter(|found| fits(&found.job)).count();
        let text = |found: &Found<J>| {
            let job = serde_json::to_string(&found.job).unwrap_or_else(|error| error.to_string());
            format!("\n  {} {} in {}: {job}", found.state, J::KIND, found.queue)
        };
        (fitting, all.iter().map(text).collect())
    }

    async fn of_queue<J: Job>(
        &self,
        queue: &QueueName,
        state: State,
    ) -> Vec<(Timestamp, Found<J>)> {
        let kinds = std::iter::once(&J::KIND).chain(J::ALIASES);
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.store().list(queue, state, None, cursor.as_deref(), PAGE).await;
            let page = page.expect("a store in memory is there");
            for listed in page.jobs {
                let Ok(info) = self.store().show(queue, &listed.id).await else { continue };
                let (envelope, enqueued_at) = info.envelope.expect("a store in memory decodes");
                if !kinds.clone().any(|kind| *kind == envelope.kind().as_str()) {
                    continue;
                }
                let job = Payload::of(&envelope).decode().expect("a payload of its kind's type");
                let (queue, due_at) = (queue.clone(), info.due_at);
                found.push((
                    enqueued_at,
                    Found { job, queue, id: info.id, state, due_at, envelope },
                ));
            }
            cursor = page.cursor;
            if cursor.is_none() {
                return found;
            }
        }
    }

    async fn queues(&self) -> Vec<QueueName> {
        self.store().queues().await.expect("a store in memory is there")
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.client.store()
    }
}

impl Default for Kit {
    fn default() -> Self {
        Self::new()
    }
}

/// Asserts that a job that fits the pattern is enqueued and not finished; the pattern names the job's
/// type. To be used in an `async` function. For more than a pattern says:
/// [`Kit::enqueued`](crate::testing::Kit::enqueued).
///
/// ```
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendWelcome { user: u64 }
/// # impl sprag::Job for SendWelcome { const KIND: &'static str = "email:welcome"; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sprag::StoreError> {
/// # use sprag::{assert_enqueued, testing::Kit};
/// let kit = Kit::new();
/// kit.client().enqueue(SendWelcome { user: 7 }).await?;
/// assert_enqueued!(kit, SendWelcome { user: 7 });
/// assert_enqueued!(kit, SendWelcome { user } if *user > 5);
/// # Ok(()) }
/// ```
#[macro_export]
macro_rules! assert_enqueued {
    ($kit:expr, $job:pat $(if $guard:expr)? $(,)?) => {{
        let (fitting, all) = $kit.matching(|job| matches!(job, $job $(if $guard)?)).await;
        assert!(fitting > 0, "no job {} is enqueued; there are:{all}", stringify!($job $(if $guard)?));
    }};
}

/// Asserts that no unfinished job fits the pattern. As [`assert_enqueued!`](crate::assert_enqueued).
#[macro_export]
macro_rules! assert_not_enqueued {
    ($kit:expr, $job:pat $(if $guard:expr)? $(,)?) => {{
        let (fitting, all) = $kit.matching(|job| matches!(job, $job $(if $guard)?)).await;
        assert!(fitting == 0, "a job {} is enqueued:{all}", stringify!($job $(if $guard)?));
    }};
}
