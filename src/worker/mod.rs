//! The worker: claims jobs, runs their handlers, settles what came of them.
//!
//! # Layout
//!
//! Read in this order. `builder` says what a worker is told; `handler` which function runs which
//! kind, `context` what it knows of its job. `fetch` claims for free slots, over the queues of
//! `sources`, and blocks when there is nothing; `execute` runs one job, by an `attempt` that can be
//! given up (`cancel`); `settle` tells the store. `keeper` is a thread of its own that extends the
//! leases of what is `running`, beats, and obeys operators (`control`). `sweep` does what time has
//! made due. What goes to the store for one queue waits for no other's (`calls`). `hooks` and `meters` tell others. `until_empty` does all that without loops, for tests.

mod attempt;
mod backoff;
mod beat;
mod builder;
mod calls;
mod cancel;
mod context;
mod control;
mod execute;
mod fetch;
mod handler;
mod hooks;
mod keeper;
mod meters;
mod progress;
mod report;
mod running;
mod settle;
mod shutdown;
mod sources;
mod sweep;
mod until_empty;

pub use backoff::Exponential;
pub use builder::WorkerBuilder;
pub use cancel::CancelReason;
pub use context::Context;
pub use handler::{Answer, Attempt, BoxError, Data, FromJob, Handler, Headers, Verdict};
pub use hooks::EndedJob;
pub use progress::Progress;
pub use report::Report;
pub use shutdown::Shutdown;

use crate::{
    Client,
    model::{StoreError, WorkerId},
    store::Store,
};
use context::Surroundings;
use handler::Handlers;
use hooks::Hooks;
use keeper::Keeper;
use meters::Meters;
use running::Running;
use sources::{Order, Queues, Selection};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, Semaphore, mpsc, watch},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Told a second time to stop, what is in flight to the store has so long to be answered; so have
/// hooks that still run at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Runs handlers for jobs.
///
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)] struct SendWelcome { user: u64 }
/// # impl sprag::Job for SendWelcome { const KIND: &'static str = "email:welcome"; }
/// # async fn example() -> Result<(), sprag::StoreError> {
/// use sprag::{Client, Worker};
///
/// async fn welcome(job: SendWelcome) -> Result<(), std::io::Error> {
///     println!("welcome, {}", job.user);
///     Ok(())
/// }
///
/// let worker = Worker::builder(&Client::from_env()?).handler(welcome).concurrency(50).build()?;
/// let report = worker.run().await;
/// println!("{} completed", report.completed);
/// # Ok(()) }
/// ```
///
/// # Dropping it
/// Whoever drops the future of [`run`](Worker::run) aborts the worker: it claims nothing more, its
/// handlers are dropped at their next `.await`, and their jobs are put back, in the background, while
/// the runtime lives.
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
    id: WorkerId,
    surroundings: Arc<Surroundings>,
    selection: Selection,
    /// Those that are served now.
    queues: watch::Sender<Queues>,
    order: Order,
    handlers: Handlers,
    hooks: Hooks,
    meters: Meters,
    concurrency: usize,
    lease: Duration,
    timeout: Option<Duration>,
    cancel_grace: Duration,
    backoff: Box<Backoff>,
    running: Running,
    unsettled: mpsc::Sender<settle::Unsettled>,
    /// The one place for a job that is suspected of killing its workers.
    suspects: Semaphore,
    shutdown: Shutdown,
    /// No run is left: settle what has come and end.
    runs_over: CancellationToken,
    /// The fetcher is told that there is something to claim.
    look: Notify,
    /// The fetcher tells the sweep that something may be due sooner.
    sweep_soon: Notify,
    /// The keeper is told to extend all leases at once.
    extend_now: Notify,
    report: Mutex<Report>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Shared {
    fn store(&self) -> &Arc<dyn Store> {
        self.surroundings.client.store()
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        // Counters: a panic leaves none half-done.
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    /// Starts a worker on a client's store.
    pub fn builder(client: &Client) -> WorkerBuilder {
        WorkerBuilder::new(client)
    }

    /// Who this worker is: unique per start.
    pub fn id(&self) -> &WorkerId {
        &self.shared.id
    }

    /// A handle that stops this worker. Handlers have it as [`Context::shutdown`].
    pub fn shutdown(&self) -> Shutdown {
        self.shared.shutdown.clone()
    }

    /// Runs until SIGTERM or SIGINT, then drains: claims nothing more, waits for running handlers
    /// up to the grace while their leases are extended, tells those left to stop, and puts their
    /// jobs back with no attempt spent. A second signal ends the grace at once, and with it calls to
    /// a store that does not answer. SIGTSTP makes it quiet: it claims nothing more, and goes on with
    /// what it has.
    pub async fn run(self) -> Report {
        let signals = tokio::spawn(shutdown::obey_signals(self.shutdown()));
        let report = self.run_until_shutdown().await;
        signals.abort();
        report
    }

    /// Runs until [`Shutdown::drain`], without listening to signals: for a worker inside another
    /// program, or several of them.
    pub async fn run_until_shutdown(self) -> Report {
        let shared = self.shared.clone();
        let dropped = shared.shutdown.unless_dropped();
        // A task of its own: it ends well even if whoever awaits this does not.
        let life = tokio::spawn(self.live()).await;
        dropped.disarm();
        life.unwrap_or_else(|error| {
            tracing::error!(%error, "the worker ended by itself; its jobs come back");
            *shared.report()
        })
    }

    /// Runs what can be run now, one job after another, and returns when nothing is left but what is
    /// due later: for tests and for programs that are started by a timer. Says what was done in this
    /// call. Hooks that it called are waited for, half a second at most.
    ///
    /// # Errors
    /// The store's, which end it early. What was done before is done, and logged; a job that could not be
    /// settled before its lease was lost comes back.
    ///
    /// # Cancel safety
    /// Dropped before its end it lets go of the job in hand: the handler is told to stop, and the job
    /// runs again when its lease ends.
    pub async fn run_until_empty(&mut self) -> Result<Report, StoreError> {
        let shared = &self.shared;
        let keeper = Keeper::start(shared);
        let before = *shared.report();
        let ended = until_empty::go_through(shared).await;
        shared.hooks.over().await;
        keeper.end().await;
        beat::leave(shared).await;
        let report = shared.report().since(&before);
        ended.map(|()| report).inspect_err(|error| {
            tracing::error!(%error, ?report, "stopped; what is left waits");
        })
    }

    async fn live(self) -> Report {
        let Self { shared, unsettled, grace } = self;
        tracing::info!(worker = %shared.id, queues = ?*shared.queues.borrow(), "worker starts");
        meters::describe();
        let runs = TaskTracker::new();
        let keeper = Keeper::start(&shared);
        let hurried = CancellationToken::new();
        let helpers = [
            tokio::spawn(sweep::sweep_queues(shared.clone())),
            tokio::spawn(sources::discover(shared.clone())),
            tokio::spawn(hurry(shared.clone(), hurried.clone())),
        ];
        let settling = tokio::spawn(settle::settle_all(shared.clone(), unsettled));
        let fetching = tokio::spawn(fetch::Fetcher::new(shared.clone(), runs.clone()).run());
        let all_runs = async {
            let lost = "a claim in flight; its jobs return when their leases end";
            ended(&shared, fetching, lost, &hurried).await;
            // Quiet, it lives on until it is told to end.
            shared.shutdown.draining().await;
            runs.close();
            runs.wait().await;
        };
        // The grace begins with the wish, also while a claim waits for a store that is away.
        let end_of_grace = async {
            shared.shutdown.draining().await;
            tokio::select! {
                () = tokio::time::sleep(grace) => {}
                () = shared.shutdown.aborted() => {}
            }
            shared.running.cancel_all(CancelReason::Shutdown);
            // Each run ends within its own grace now; only the store may be waited for.
            hurried.cancelled().await;
        };
        tokio::select! { () = all_runs => {} () = end_of_grace => {} }
        shared.runs_over.cancel();
        // Settling goes on until all is settled; leases are extended for as long.
        let lost = "settlements; their jobs return when their leases end";
        ended(&shared, settling, lost, &hurried).await;
        keeper.end().await;
        helpers.iter().for_each(JoinHandle::abort);
        tokio::join!(beat::leave(&shared), shared.hooks.over());
        // What was given up unsettled.
        let unsettled = shared.running.count() as u64;
        shared.report().lost += unsettled;
        let report = *shared.report();
        tracing::info!(worker = %shared.id, ?report, "worker ends");
        report
    }
}

/// Told a second time to stop, the worker is hurried a moment later.
async fn hurry(shared: Arc<Shared>, hurried: CancellationToken) {
    shared.shutdown.aborted().await;
    tokio::time::sleep(LAST_WORDS).await;
    hurried.cancel();
}

/// Waits for a part of the worker to end, unless the worker is hurried.
async fn ended(shared: &Shared, mut part: JoinHandle<()>, lost: &str, hurried: &CancellationToken) {
    tokio::select! {
        ended = &mut part => if let Err(error) = ended {
            tracing::error!(%error, lost, "a part of the worker ended by itself; draining");
            shared.shutdown.drain();
        },
        () = hurried.cancelled() => {
            tracing::warn!(lost, "told again to stop: given up");
            part.abort();
        }
    }
}
