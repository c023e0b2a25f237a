//! What a worker is told before it runs.

use super::{
    Answer, Backoff, BoxError, Context, EndedJob, Exponential, Handler, Report, Shared, Shutdown,
    Worker,
    context::Surroundings,
    handler::{DataMap, Registry, Run, boxed},
    hooks::Hooks,
    meters::Meters,
    running::Running,
    sources::{Order, Selection, Selector},
};
use crate::{
    Client, Job,
    model::{Kind, StoreError, WorkerId, checked, checked_lease},
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};

/// Makes a [`Worker`].
#[must_use = "a worker is made by build()"]
pub struct WorkerBuilder {
    client: Client,
    selectors: Vec<(Result<Selector, StoreError>, u32)>,
    own_queues: Vec<&'static str>,
    order: Order,
    /// The first that was refused is what `build` answers.
    registry: Result<Registry, StoreError>,
    data: DataMap,
    hooks: Hooks,
    concurrency: usize,
    lease: Duration,
    timeout: Option<Duration>,
    grace: Duration,
    cancel_grace: Duration,
    backoff: Box<Backoff>,
}

impl WorkerBuilder {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            selectors: Vec::new(),
            own_queues: Vec::new(),
            order: Order::Weighted,
            registry: Ok(Registry::default()),
            data: DataMap::default(),
            hooks: Hooks::default(),
            concurrency: 10,
            lease: Duration::from_secs(30),
            timeout: None,
            grace: Duration::from_secs(25),
            cancel_grace: Duration::from_secs(1),
            backoff: Box::new(|attempt| Exponential::default().after(attempt)),
        }
    }

    fn register(mut self, register: impl FnOnce(&mut Registry) -> Result<(), StoreError>) -> Self {
        self.registry = self.registry.and_then(|mut registry| {
            register(&mut registry)?;
            Ok(registry)
        });
        self
    }

    /// Runs jobs of the kind `J::KIND`, and of its [aliases](Job::ALIASES), by this function, and
    /// serves the queue `J::QUEUE` unless [`queue`](WorkerBuilder::queue) names others. An error is
    /// tried again after a [back-off](WorkerBuilder::backoff), or does what the
    /// [`Verdict`](super::Verdict) in it says; a panic is a failed attempt. What the handler returns
    /// is kept as JSON for as long as the completed job is (its retention; without one it is dropped).
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct Charge { cents: u64 }
    /// # impl sprag::Job for Charge { const KIND: &'static str = "charge"; }
    /// use sprag::{Client, Context, Verdict, Worker, worker::Data};
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// async fn charge(job: Charge, total: Data<AtomicU64>, context: Context) -> Result<u64, Verdict> {
    ///     if job.cents == 0 {
    ///         return Err(Verdict::discard("nothing to charge"));
    ///     }
    ///     println!("job {}, attempt {}", context.id(), context.attempt() + 1);
    ///     Ok(total.fetch_add(job.cents, Ordering::Relaxed))
    /// }
    ///
    /// # fn example(client: Client) -> Result<Worker, sprag::StoreError> {
    /// Worker::builder(&client).data(AtomicU64::new(0)).handler(charge).build()
    /// # }
    /// ```
    ///
    /// A function that does not fit is told so by the compiler:
    ///
    /// ```compile_fail
    /// # fn example(client: sprag::Client) {
    /// async fn no_job(user: u64) -> Result<(), std::io::Error> { Ok(()) }
    /// sprag::Worker::builder(&client).handler(no_job); // this is not a handler of jobs
    /// # }
    /// ```
    pub fn handler<H: Handler<Args>, Args: 'static>(mut self, handler: H) -> Self {
        self.own_queues.push(H::Job::QUEUE);
        self.register(|registry| registry.handler(handler))
    }

    /// Runs jobs of a kind by any [`tower::Service`], payload as it is: for kinds that have no type
    /// here. It serves no queue by itself.
    ///
    /// ```
    /// use sprag::{Client, Context, Worker, worker::{Answer, BoxError}};
    ///
    /// # fn example(client: Client) -> Result<Worker, sprag::StoreError> {
    /// let size = tower::service_fn(|context: Context| async move {
    ///     let bytes = context.envelope().payload().len();
    ///     Ok::<_, BoxError>(Answer::json(&bytes)?)
    /// });
    /// Worker::builder(&client).service("size", size).queue("sizes").build()
    /// # }
    /// ```
    pub fn service<S>(self, kind: impl AsRef<str>, service: S) -> Self
    where
        S: Service<Context, Response = Answer> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        self.register(|registry| {
            registry.service(Kind::new(kind)?, boxed(service));
            Ok(())
        })
    }

    /// Runs jobs of all kinds that have no handler of their own by this service. It is counted under
    /// the kind `other`.
    pub fn fallback<S>(self, service: S) -> Self
    where
        S: Service<Context, Response = Answer> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        self.register(|registry| {
            registry.fallback(boxed(service));
            Ok(())
        })
    }

    /// Puts a [`tower::Layer`] around each handler, wherever it stands among these calls; of several
    /// the last is the outermost, as in axum. It is made once per handler: a
    /// `ConcurrencyLimitLayer` limits each by itself, a `GlobalConcurrencyLimitLayer` all together.
    /// Timeout, ownership and cancellation stand outside of all layers: none can break a lease. An
    /// undecodable payload passes through layers as an error.
    pub fn layer<L>(self, layer: L) -> Self
    where
        L: Layer<Run> + Send + Sync + 'static,
        L::Service: Service<Context, Response = Answer> + Clone + Send + Sync + 'static,
        <L::Service as Service<Context>>::Error: Into<BoxError>,
        <L::Service as Service<Context>>::Future: Send + 'static,
    {
        self.register(|registry| {
            registry.layer(layer);
            Ok(())
        })
    }

    /// Shares state with handlers, which ask for it as [`Data<T>`](super::Data). One value per type:
    /// the last counts.
    pub fn data<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.data.insert(value);
        self
    }

    /// Serves this queue, with weight 1; `mail-*` serves all queues whose names begin so, also those
    /// that appear later (within 5 s), and `*` all. With any queue named, the handlers' own are not
    /// served unless they are named as well.
    pub fn queue(self, queue: impl AsRef<str>) -> Self {
        self.weighted_queue(queue, 1)
    }

    /// Serves this queue, or each of this pattern: while all have jobs, slots go to queues in
    /// proportion to their weights, 1 to 1,000.
    pub fn weighted_queue(mut self, queue: impl AsRef<str>, weight: u32) -> Self {
        self.selectors.push((Selector::parse(queue.as_ref()), weight));
        self
    }

    /// Serves a queue only while those named before it have nothing to run. Weights do not count
    /// then, and a queue may starve.
    pub fn strict_order(mut self) -> Self {
        self.order = Order::Strict;
        self
    }

    /// Jobs at a time, 1 to 10,000. Default 10.
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs;
        self
    }

    /// How long a job stays this worker's without a word from it: 100 ms to 24 h, default 30 s.
    /// It is extended at a third of this, by a thread that a busy handler cannot starve.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long an attempt may take if its job does not say so itself: whole ms, 1 ms to 10 years.
    /// Then its handler is told to stop; what it answers by the end of the
    /// [`cancel_grace`](WorkerBuilder::cancel_grace) counts, else the attempt has failed. Default: as
    /// long as it likes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long running handlers may take to finish at shutdown. Default 25 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long a handler that was told to stop (timeout, lost lease, operator, shutdown) may take to
    /// come to its own end. Then it is dropped at its next `.await`; one that has none is left behind
    /// and counted as a runaway. Its slot is free either way. Default 1 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// How long to wait after the attempt of this number, from 1, failed, unless the job's type
    /// [says](Job::backoff) so itself. Rounded up to whole ms, 1 ms to 10 years. Default:
    /// [`Exponential`], from 15 s to a day.
    pub fn backoff(mut self, backoff: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        self.backoff = Box::new(backoff);
        self
    }

    /// Calls this with each job that this worker, or its sweep, sends to the archive. In the
    /// background; told at most once: not if the worker dies just then.
    pub fn on_archive<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(EndedJob) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.hooks.on_archive(hook);
        self
    }

    /// Calls this with each job that this worker's sweep, or claim, puts into quarantine. As
    /// [`on_archive`](WorkerBuilder::on_archive).
    pub fn on_quarantine<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(EndedJob) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.hooks.on_quarantine(hook);
        self
    }

    /// Makes the worker. It connects when it runs.
    ///
    /// # Errors
    /// `Invalid` if a queue, kind, weight, lease, timeout or concurrency is out of bounds, there is no
    /// handler, two handlers for one kind, no queue to serve, or no [`data`](WorkerBuilder::data) that
    /// a handler asks for.
    pub fn build(self) -> Result<Worker, StoreError> {
        let handlers = self.registry?.build(&self.data)?;
        if !(1..=10_000).contains(&self.concurrency) {
            return Err(StoreError::invalid("concurrency", self.concurrency, "1 to 10000"));
        }
        if let Some(timeout) = self.timeout {
            checked("timeout", timeout)?;
        }
        let selection = selection(self.selectors, &self.own_queues)?;
        let named = selection.resolve(&[]);
        let (sender, unsettled) = mpsc::channel(self.concurrency.max(64));
        let shutdown = Shutdown::default();
        let surroundings =
            Surroundings { client: self.client, data: self.data, shutdown: shutdown.clone() };
        let shared = Shared {
            id: identity()?,
            surroundings: Arc::new(surroundings),
            selection,
            queues: watch::Sender::new(named.into()),
            order: self.order,
            handlers,
            hooks: self.hooks,
            meters: Meters::default(),
            concurrency: self.concurrency,
            lease: checked_lease(self.lease)?,
            timeout: self.timeout,
            cancel_grace: self.cancel_grace,
            backoff: self.backoff,
            running: Running::default(),
            unsettled: sender,
            suspects: Semaphore::new(1),
            shutdown,
            runs_over: CancellationToken::new(),
            look: Notify::new(),
            sweep_soon: Notify::new(),
            extend_now: Notify::new(),
            report: Mutex::new(Report::default()),
        };
        Ok(Worker { shared: Arc::new(shared), unsettled, grace: self.grace })
    }
}

/// What is named, or else the handlers' own queues.
fn selection(
    named: Vec<(Result<Selector, StoreError>, u32)>,
    own: &[&str],
) -> Result<Selection, StoreError> {
    let named = match named.is_empty() {
        true => own.iter().map(|queue| (Selector::parse(queue), 1)).collect(),
        false => named,
    };
    if named.is_empty() {
        return Err(StoreError::invalid("queues", "none", "at least one"));
    }
    let mut selectors = Vec::new();
    for (selector, weight) in named {
        if !(1..=1_000).contains(&weight) {
            return Err(StoreError::invalid("weight", weight, "1 to 1000"));
        }
        selectors.push((selector?, weight));
    }
    Ok(Selection(selectors))
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
