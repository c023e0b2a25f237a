//! The worker: claims jobs, runs their handlers, settles what came of them.
//!
//! # Layout
//!
//! `fetch` claims for free slots and blocks when there is nothing; `execute` runs one job;
//! `settle` tells the store; `running` keeps the leases; `sweep` does what time has made due.

mod beat;
mod context;
mod execute;
mod fetch;
mod handler;
mod running;
mod settle;
mod sweep;

pub use context::Context;
pub use execute::backoff;
pub use handler::Verdict;

use crate::{
    Client, Job,
    model::{Kind, QueueName, StoreError, WorkerId, checked_lease},
    store::Store,
};
use handler::Handlers;
use running::Running;
use std::{
    error::Error,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore, mpsc},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Told to stop at the end of the grace, handlers have so long to come to an end by themselves
/// before what they await is dropped.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Runs handlers for jobs.
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendWelcome { user: u64 }
/// # impl sprag::Job for SendWelcome { const KIND: &'static str = "email:welcome"; }
/// # async fn example() -> Result<(), sprag::StoreError> {
/// use sprag::{Client, Worker};
/// let report = Worker::builder(&Client::from_env()?)
///     .handler(|job: SendWelcome, _context| async move {
///         println!("welcome, {}", job.user);
///         Ok::<_, std::io::Error>(())
///     })
///     .concurrency(50)
///     .build()?
///     .run()
///     .await;
/// println!("{} completed", report.completed);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    unsettled: mpsc::Receiver<settle::Unsettled>,
    grace: Duration,
}

/// How long to wait after the attempt of this number.
type Backoff = dyn Fn(u32) -> Duration + Send + Sync;

/// What all parts of a worker know.
struct Shared {
    store: Arc<dyn Store>,
    id: WorkerId,
    queues: Vec<(QueueName, u32)>,
    handlers: Handlers,
    concurrency: usize,
    lease: Duration,
    backoff: Arc<Backoff>,
    running: Running,
    unsettled: mpsc::Sender<settle::Unsettled>,
    /// The one place for a job that is suspected of killing its workers.
    suspects: Semaphore,
    /// Claim nothing more.
    stop: CancellationToken,
    /// Drop what handlers still await.
    abort: CancellationToken,
    /// No run is left: settle what has come and end.
    runs_over: CancellationToken,
    /// The sweep tells the fetcher that there is something to claim.
    look: Notify,
    /// The fetcher tells the sweep that something may be due sooner.
    sweep_soon: Notify,
    report: Mutex<Report>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("id", &self.id)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn report(&self) -> MutexGuard<'_, Report> {
        // Counters: a panic leaves none half-done.
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a worker did in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Jobs completed.
    pub completed: u64,
    /// Attempts that failed and will be tried again.
    pub retried: u64,
    /// Jobs given up.
    pub archived: u64,
    /// Jobs put off without an attempt spent.
    pub snoozed: u64,
    /// Jobs put back, at shutdown or because their handler was told to stop.
    pub requeued: u64,
    /// Runs whose settlement was refused or could not be delivered: the job runs again elsewhere.
    pub lost: u64,
}

/// Stops a worker from outside.
#[derive(Debug, Clone)]
pub struct Shutdown(CancellationToken);

impl Shutdown {
    /// Claims nothing more, waits for running handlers up to the grace, puts the rest back.
    pub fn drain(&self) {
        self.0.cancel();
    }
}

/// Makes a [`Worker`].
#[must_use = "a worker is made by build()"]
pub struct WorkerBuilder {
    store: Arc<dyn Store>,
    queues: Vec<(Result<QueueName, StoreError>, u32)>,
    own_queues: Vec<Result<QueueName, StoreError>>,
    handlers: Result<Handlers, StoreError>,
    concurrency: usize,
    lease: Duration,
    grace: Duration,
    backoff: Arc<Backoff>,
}

impl Worker {
    /// Starts a worker on a client's store.
    pub fn builder(client: &Client) -> WorkerBuilder {
        WorkerBuilder {
            store: client.store().clone(),
            queues: Vec::new(),
            own_queues: Vec::new(),
            handlers: Ok(Handlers::default()),
            concurrency: 10,
            lease: Duration::from_secs(30),
            grace: Duration::from_secs(25),
            backoff: Arc::new(execute::backoff),
        }
    }

    /// Who this worker is: unique per start.
    pub fn id(&self) -> &WorkerId {
        &self.shared.id
    }

    /// A handle that stops this worker.
    pub fn shutdown(&self) -> Shutdown {
        Shutdown(self.shared.stop.clone())
    }

    /// Runs until SIGTERM or SIGINT, then drains: claims nothing more, waits for running handlers
    /// up to the grace while their leases are extended, tells those left to stop, and puts their
    /// jobs back with no attempt spent. A second signal ends the grace at once, and with it calls to
    /// a store that does not answer.
    pub async fn run(self) -> Report {
        let (stop, hurry) = (self.shared.stop.clone(), CancellationToken::new());
        let hurry_on = hurry.clone();
        let mut signals = Signals::listen();
        let signals = tokio::spawn(async move {
            signals.next().await;
            tracing::info!("told to stop: draining");
            stop.cancel();
            signals.next().await;
            tracing::warn!("told again: the grace is over");
            hurry_on.cancel();
        });
        let report = self.run_within(hurry).await;
        signals.abort();
        report
    }

    /// Runs until [`Shutdown::drain`], without listening to signals: for a worker inside another
    /// program.
    pub async fn run_until_shutdown(self) -> Report {
        self.run_within(CancellationToken::new()).await
    }

    async fn run_within(self, hurry: CancellationToken) -> Report {
        let Self { shared, unsettled, grace } = self;
        tracing::info!(worker = %shared.id, queues = ?shared.queues, "worker starts");
        let runs = TaskTracker::new();
        let helpers = [
            tokio::spawn(sweep::sweep_queues(shared.clone())),
            tokio::spawn(running::extend_leases(shared.clone())),
            tokio::spawn(running::watch_deadlines(shared.clone())),
            tokio::spawn(beat::beat(shared.clone())),
        ];
        let settling = tokio::spawn(settle::settle_all(shared.clone(), unsettled));
        let fetching = tokio::spawn(fetch::Fetcher::new(shared.clone(), runs.clone()).run());
        ended(fetching, &hurry, "a claim in flight; its jobs return when their leases end").await;

        runs.close();
        tokio::select! {
            () = runs.wait() => {}
            () = tokio::time::sleep(grace) => {}
            () = hurry.cancelled() => {}
        }
        shared.running.cancel_all();
        if tokio::time::timeout(LAST_WORDS, runs.wait()).await.is_err() {
            shared.abort.cancel();
            runs.wait().await;
        }
        shared.runs_over.cancel();
        // Settling goes on until all is settled; leases are extended for as long.
        ended(settling, &hurry, "settlements; their jobs return when their leases end").await;
        helpers.iter().for_each(JoinHandle::abort);
        beat::leave(&shared).await;
        let report = *shared.report();
        tracing::info!(worker = %shared.id, ?report, "worker ends");
        report
    }
}

/// Waits for a part of the worker to end; once hurried, only for a moment more.
async fn ended(mut part: JoinHandle<()>, hurry: &CancellationToken, lost: &str) {
    let in_time = async {
        hurry.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        ended = &mut part => if let Err(error) = ended {
            tracing::error!(%error, lost, "a part of the worker ended by itself");
        },
        () = in_time => {
            tracing::warn!(lost, "told again to stop: given up");
            part.abort();
        }
    }
}

impl WorkerBuilder {
    /// Runs jobs of the kind `J::KIND` by this function, and serves the queue `J::QUEUE` unless
    /// [`queue`](WorkerBuilder::queue) names others. An error is tried again after a back-off, or
    /// does what its [`Verdict`] says; a panic is a failed attempt. What the handler returns is kept
    /// as JSON for as long as the completed job is (its retention; without one it is dropped), to be
    /// waited for by [`Client::wait`] or read by [`Store::show`].
    ///
    /// A handler is an `async fn` or a closure; shared state goes in by an [`Arc`]. Its error is any
    /// type that can become a `Box<dyn Error + Send + Sync>`, `anyhow::Error` among them.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct Charge { cents: u64 }
    /// # impl sprag::Job for Charge { const KIND: &'static str = "charge"; }
    /// use sprag::{Client, Context, Verdict, Worker};
    /// use std::{error::Error, sync::{Arc, atomic::{AtomicU64, Ordering}}};
    ///
    /// async fn charge(
    ///     total: Arc<AtomicU64>,
    ///     job: Charge,
    ///     context: Context,
    /// ) -> Result<u64, Box<dyn Error + Send + Sync>> {
    ///     if job.cents == 0 {
    ///         return Err(Verdict::discard("nothing to charge").into());
    ///     }
    ///     println!("job {}, attempt {}", context.id(), context.attempt() + 1);
    ///     Ok(total.fetch_add(job.cents, Ordering::Relaxed))
    /// }
    ///
    /// # fn example(client: Client) -> Result<Worker, sprag::StoreError> {
    /// let total = Arc::new(AtomicU64::new(0));
    /// Worker::builder(&client).handler(move |job, context| charge(total.clone(), job, context)).build()
    /// # }
    /// ```
    pub fn handler<J, F, Fut, R, E>(mut self, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: serde::Serialize,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.own_queues.push(QueueName::new(J::QUEUE));
        self.handlers = self.handlers.and_then(|mut handlers| {
            handlers.insert(Kind::new(J::KIND)?, handler);
            Ok(handlers)
        });
        self
    }

    /// Serves this queue, with weight 1. With any queue named, the handlers' own are not served
    /// unless they are named as well.
    pub fn queue(self, queue: impl AsRef<str>) -> Self {
        self.weighted_queue(queue, 1)
    }

    /// Serves this queue: while all have jobs, slots go to queues in proportion to their weights.
    pub fn weighted_queue(mut self, queue: impl AsRef<str>, weight: u32) -> Self {
        self.queues.push((QueueName::new(queue), weight));
        self
    }

    /// Jobs at a time, 1 to 10,000. Default 10.
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs;
        self
    }

    /// How long a job stays this worker's without a word from it: 100 ms to 24 h, default 30 s.
    /// It is extended at a third of this.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long running handlers may take to finish at shutdown. Default 25 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long to wait after the attempt of this number (from 1) failed. Default: 15 s +
    /// (attempt − 1)⁴ s, at most a day, ± 15 %.
    pub fn backoff(mut self, backoff: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        self.backoff = Arc::new(backoff);
        self
    }

    /// Makes the worker. It connects when it runs.
    ///
    /// # Errors
    /// `Invalid` if a queue, kind, weight, lease or concurrency is out of bounds, or there is no
    /// handler.
    pub fn build(self) -> Result<Worker, StoreError> {
        let handlers = self.handlers?;
        if handlers.is_empty() {
            return Err(StoreError::invalid("handlers", "none", "at least one"));
        }
        if !(1..=10_000).contains(&self.concurrency) {
            return Err(StoreError::invalid("concurrency", self.concurrency, "1 to 10000"));
        }
        let named = if self.queues.is_empty() {
            self.own_queues.into_iter().map(|queue| (queue, 1)).collect()
        } else {
            self.queues
        };
        let mut queues: Vec<(QueueName, u32)> = Vec::new();
        for (queue, weight) in named {
            let queue = queue?;
            if !(1..=1_000).contains(&weight) {
                return Err(StoreError::invalid("weight", weight, "1 to 1000"));
            }
            if !queues.iter().any(|(known, _)| *known == queue) {
                queues.push((queue, weight));
            }
        }
        let (sender, unsettled) = mpsc::channel(self.concurrency.max(64));
        let shared = Shared {
            store: self.store,
            id: identity()?,
            queues,
            handlers,
            concurrency: self.concurrency,
            lease: checked_lease(self.lease)?,
            backoff: self.backoff,
            running: Running::default(),
            unsettled: sender,
            suspects: Semaphore::new(1),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
            runs_over: CancellationToken::new(),
            look: Notify::new(),
            sweep_soon: Notify::new(),
            report: Mutex::default(),
        };
        Ok(Worker { shared: Arc::new(shared), unsettled, grace: self.grace })
    }
}

/// Host, pid and a random part: a container that restarts with the same host name and pid is
/// another worker.
fn identity() -> Result<WorkerId, StoreError> {
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    let fits = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let host: String = host.chars().filter(fits).take(64).collect();
    let host = if host.is_empty() { "host".to_owned() } else { host };
    WorkerId::new(format!("{host}:{}:{:08x}", std::process::id(), fastrand::u32(..)))
}

/// SIGTERM and SIGINT, heard from the moment this is made.
#[cfg(unix)]
struct Signals(Option<[tokio::signal::unix::Signal; 2]>);

#[cfg(unix)]
impl Signals {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(term), Ok(int)) => Self(Some([term, int])),
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(%error, "cannot listen to signals; stop this worker by its handle");
                Self(None)
            }
        }
    }

    async fn next(&mut self) {
        match &mut self.0 {
            Some([term, int]) => tokio::select! { _ = term.recv() => {} _ = int.recv() => {} },
            None => std::future::pending().await,
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "cannot listen to signals; stop this worker by its handle");
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CASES 19: a container that restarts with the same host name and pid.
    #[test]
    fn an_identity_is_another_at_every_start() {
        let (first, second) = (identity().expect("valid"), identity().expect("valid"));
        assert_ne!(first, second);
        let pid = format!(":{}:", std::process::id());
        assert!(first.as_str().contains(&pid), "{first}");
    }
}
