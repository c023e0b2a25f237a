//! The producer's face: typed jobs in, answers out.
//!
//! `env` finds the server, `enqueue` has a job's options, `gather` sends those of many callers together,
//! `wait` waits for a job's end, `bus` hears of it.

mod bus;
mod enqueue;
mod env;
mod gather;
mod meters;
mod wait;

pub use enqueue::{Enqueue, OrJoin};
use env::url_from_env;
pub use env::with_env_password;
pub use wait::{Wait, WaitError};

use crate::{
    Job,
    job::encode,
    model::{
        Envelope, EnvelopeBuilder, Kind, MAX_BATCH, MAX_BATCH_BYTES, Namespace, QueueName,
        StoreError, When,
    },
    store::{BatchError, Durability, Enqueued, MemoryStore, Outcomes, RedisStore, Store},
    trace::{self, TraceParent},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};

/// Waits of [`Client::ready`]: from the first, doubling up to the last. A gate in front of each server
/// lets fewer tries pass.
const READY_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What a try of [`Client::ready`] may take at least: a TLS handshake by way of a sentinel fits.
const READY_TRY: Duration = Duration::from_secs(1);

fn silent(within: Duration) -> StoreError {
    StoreError::Unavailable(format!("no answer within {within:?}"))
}

/// Enqueues jobs. Cheap to clone; one per process is enough.
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Store>,
    max_payload: usize,
    gather: Arc<gather::Gather>,
    waits: Arc<bus::Waits>,
    traceparent: Option<Arc<TraceSource>>,
    /// What is enqueued durably shares calls with what is to be as durable.
    durable: Arc<Mutex<HashMap<Durability, Way>>>,
}

/// A store, and who gathers for it.
type Way = (Arc<dyn Store>, Arc<gather::Gather>);

/// The span that is current where a job is enqueued, as a tracing library knows it.
type TraceSource = dyn Fn() -> Option<String> + Send + Sync;

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Client {
    /// Opens the store that the URL names, see [`RedisStore::builder`], or `memory://` for a try inside
    /// one process. Connects at the first call.
    ///
    /// # Errors
    /// `Invalid` if the URL is not one of these. Its text does not repeat the URL.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_to(url, Namespace::default())
    }

    /// Like [`connect`](Client::connect), in a namespace of its own.
    ///
    /// # Errors
    /// `Invalid` if the URL is not one of those.
    pub fn connect_to(url: &str, namespace: Namespace) -> Result<Self, StoreError> {
        if url == "memory://" {
            return Ok(Self::new(MemoryStore::new()));
        }
        Ok(Self::new(RedisStore::builder(url).namespace(namespace).build()?))
    }

    /// Opens the store that the environment names: `SPRAG_REDIS_URL`, else `REDIS_URL`, else
    /// `redis://127.0.0.1:6379`; if that has no password, with the one of `SPRAG_REDIS_PASSWORD`
    /// or of the file that `SPRAG_REDIS_PASSWORD_FILE` names.
    ///
    /// # Errors
    /// As [`connect`](Client::connect); `Invalid` if the password cannot be had, or both are set.
    pub fn from_env() -> Result<Self, StoreError> {
        Self::connect(&url_from_env()?)
    }

    /// Works on a store of the caller's own.
    pub fn new(store: impl Store + 'static) -> Self {
        Self {
            store: Arc::new(store),
            max_payload: crate::model::MAX_PAYLOAD,
            gather: Arc::default(),
            waits: Arc::default(),
            traceparent: None,
            durable: Arc::default(),
        }
    }

    /// The same client, whose every enqueue answers only when its jobs are so durable: see
    /// [`Enqueue::replicas`] and [`Enqueue::fsync`], which do so for one job.
    ///
    /// # Errors
    /// `Invalid` if number or timeout is out of bounds, or nothing is asked for.
    pub fn durable(&self, durability: Durability) -> Result<Self, StoreError> {
        durability.check()?;
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || (self.store.durable(durability), Arc::default());
        let (store, gather) = durable.entry(durability).or_insert_with(new).clone();
        // What it makes durable in turn is as durable as that alone.
        Ok(Self { store, gather, ..self.clone() })
    }

    /// Whether the store can be reached and used, asked again for so long until it can: zero asks once,
    /// [`Duration::MAX`] for as long as it takes. A server that takes the call and says nothing may
    /// cost a second more; with zero, some seconds. For a program's start, and for its readiness probe.
    /// Without it, a client connects at its first call, which is repeated within the store's
    /// [`repeat_budget`](crate::store::RedisStoreBuilder::repeat_budget).
    ///
    /// # Errors
    /// `Unavailable` if the store could not be reached, or did not serve, in that time; `Backend`, with
    /// what to do, at once: a user without rights, a server that is too old, a setting that loses jobs.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn ready(&self, within: Duration) -> Result<(), StoreError> {
        let started = Instant::now();
        let mut pause = READY_PAUSE.0;
        loop {
            let left = within.saturating_sub(started.elapsed()).max(READY_TRY);
            let asked = self.store.ready();
            let answer = match within {
                Duration::ZERO => asked.await,
                _ => timeout(left, asked).await.unwrap_or_else(|_| Err(silent(within))),
            };
            match answer {
                Err(StoreError::Unavailable(_)) if started.elapsed() + pause < within => {}
                answer => return answer,
            }
            sleep(pause).await;
            pause = (pause * 2).min(READY_PAUSE.1);
        }
    }

    /// Allows payloads of up to so many bytes, at most 8 MiB. Default 1 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// Asks this which span a job is enqueued in, as the text of a W3C `traceparent`: so jobs carry on
    /// the trace of the request that they come from. Asked at each [`enqueue`](Client::enqueue) and
    /// [`enqueue_many`](Client::enqueue_many), but not in a handler whose own job belongs to a trace:
    /// that one is carried on. Text that is no `traceparent` is ignored, with a log line at `debug`.
    ///
    /// ```
    /// # fn current_span_of_opentelemetry() -> Option<String> { None }
    /// # fn example(client: sprag::Client) {
    /// let client = client.traceparent_from(current_span_of_opentelemetry);
    /// # }
    /// ```
    pub fn traceparent_from(
        mut self,
        current: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.traceparent = Some(Arc::new(current));
        self
    }

    /// The store behind this client.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Enqueues one job: add options, then `.await`.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct SendWelcome { user: u64 }
    /// # impl sprag::Job for SendWelcome { const KIND: &'static str = "email:welcome"; }
    /// # async fn example(client: sprag::Client) -> Result<(), sprag::StoreError> {
    /// use sprag::OrJoin;
    /// let job = client.enqueue(SendWelcome { user: 7 });
    /// let id = job.unique_key("user-7").delay(std::time::Duration::from_secs(5)).await.or_join()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The call's own: `Duplicate`, `IdConflict`, `Backpressure`, `Invalid`; `Unavailable` when the
    /// store stayed away for the whole repeat budget: the job may have been enqueued, and the text
    /// names its id. With that [`id`](Enqueue::id) or a unique key the same call again is safe.
    ///
    /// Enqueues that are awaited at the same time share calls: those of one queue that come while a
    /// call is in flight leave together in the next, and each is told its own outcome. Who is alone
    /// is not delayed. At most 64 MiB of payloads wait or are in flight; who comes then waits for room.
    ///
    /// # Cancel safety
    /// A future that is dropped after its first poll loses only the answer: the job is sent all the
    /// same, unless it still waited for room. One that was never polled has done nothing.
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue {
        let max_payload = self.max_payload;
        let builder = builder(&job).map(|builder| builder.max_payload(max_payload));
        Enqueue { client: self.clone(), builder, inherited: self.inherited(), durability: None }
    }

    /// The span that a job enqueued here and now belongs to.
    fn inherited(&self) -> Option<TraceParent> {
        TraceParent::current().or_else(|| {
            let text = self.traceparent.as_ref()?()?;
            let parsed = text.parse();
            parsed.inspect_err(|error| tracing::debug!(%error, "traceparent ignored")).ok()
        })
    }

    /// Enqueues many jobs with their types' options, each judged by itself: a result per job, in
    /// order. For options or ids of their own, make each by [`Enqueue::envelope`] and hand them to
    /// [`enqueue_envelopes`](Client::enqueue_envelopes).
    ///
    /// # Errors
    /// `Invalid` if a job cannot be encoded, before anything is sent; `Unavailable` or `Backend` if
    /// a call failed: some jobs may have been enqueued, under ids that the caller does not know. Who
    /// wants to repeat that safely gives them ids or unique keys. The same holds if the future is
    /// dropped before its answer.
    pub async fn enqueue_many<J: Job>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Result<Outcomes<Enqueued>, StoreError> {
        let inherited = self.inherited();
        let build = |job| {
            let builder = builder(&job)?.max_payload(self.max_payload);
            in_trace(builder, inherited).build()
        };
        let envelopes = jobs.into_iter().map(build).collect::<Result<Vec<_>, _>>()?;
        self.enqueue_envelopes(&envelopes).await
    }

    /// Enqueues envelopes of any queues, each judged by itself: a result per job, in order. Splits
    /// them into calls of at most 1,000 jobs and 8 MiB.
    ///
    /// # Errors
    /// `Unavailable` or `Backend` if a call failed; those before it may have been applied.
    pub async fn enqueue_envelopes(
        &self,
        jobs: &[Envelope],
    ) -> Result<Outcomes<Enqueued>, StoreError> {
        let mut outcomes = Vec::with_capacity(jobs.len());
        for call in calls(jobs) {
            outcomes.extend(self.send(call).await?);
        }
        Ok(outcomes)
    }

    /// One call, counted.
    async fn send(&self, call: &[Envelope]) -> Result<Outcomes<Enqueued>, StoreError> {
        let answer = self.store.enqueue(call[0].queue(), call).await;
        meters::enqueued(call, &answer);
        answer
    }

    /// Enqueues all jobs or none. They must be of one queue, at most 1,000 and 8 MiB.
    ///
    /// # Errors
    /// The first offender's index and error; nothing was written.
    pub async fn enqueue_atomic(&self, jobs: &[Envelope]) -> Result<Vec<Enqueued>, BatchError> {
        match jobs.first() {
            Some(first) => {
                let answer = self.store.enqueue_atomic(first.queue(), jobs).await;
                meters::enqueued_atomic(jobs, &answer);
                answer
            }
            None => Ok(Vec::new()),
        }
    }
}

/// Runs of jobs that can go in one call: one queue, within a batch's bounds.
fn calls(jobs: &[Envelope]) -> impl Iterator<Item = &[Envelope]> {
    let mut rest = jobs;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut bytes = 0;
        let fits = |job: &&Envelope| {
            bytes += job.payload().len();
            job.queue() == first.queue() && bytes <= MAX_BATCH_BYTES
        };
        let count = rest.iter().take(MAX_BATCH).take_while(fits).count().max(1);
        let (call, later) = rest.split_at(count);
        rest = later;
        Some(call)
    })
}

fn builder<J: Job>(job: &J) -> Result<EnvelopeBuilder, StoreError> {
    let mut builder = Envelope::builder(QueueName::new(J::QUEUE)?, Kind::new(J::KIND)?)
        .payload(encode(J::CODEC, job)?, J::CODEC)
        .version(J::VERSION)
        .priority(J::PRIORITY)
        .max_attempts(J::MAX_ATTEMPTS);
    if let Some(timeout) = J::TIMEOUT {
        builder = builder.timeout(timeout);
    }
    if let Some(deadline) = J::DEADLINE {
        builder = builder.deadline(When::In(deadline));
    }
    if let Some(retention) = J::RETENTION {
        builder = builder.retention(retention);
    }
    if let Some(unique) = job.unique() {
        builder = builder.unique(unique);
    }
    Ok(builder)
}

/// What is enqueued in a span belongs to its trace, unless it says otherwise.
fn in_trace(builder: EnvelopeBuilder, span: Option<TraceParent>) -> EnvelopeBuilder {
    match span {
        Some(span) => builder.spare_header(trace::HEADER, || span.to_string()),
        None => builder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(queue: &str, bytes: usize) -> Envelope {
        let kind = Kind::new("k").expect("kind");
        let builder = Envelope::builder(QueueName::new(queue).expect("queue"), kind);
        builder.payload(vec![0; bytes], crate::Codec::Raw).build().expect("valid")
    }

    #[test]
    fn a_large_batch_is_split_by_queue_count_and_bytes() {
        let sizes = |jobs: &[Envelope]| calls(jobs).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(&vec![job("a", 1); 2_500]), [1_000, 1_000, 500]);
        assert_eq!(sizes(&[job("a", 1), job("a", 1), job("b", 1), job("a", 1)]), [2, 1, 1]);
        assert_eq!(sizes(&vec![job("a", 1 << 20); 17]), [8, 8, 1]);
        assert_eq!(sizes(&[]), [0; 0]);
    }
}
