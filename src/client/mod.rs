//! The producer's face: typed jobs in, answers out.
//!
//! `env` finds the server, `wait` waits for a job's end, `bus` hears of it.

mod bus;
mod env;
mod wait;

use env::url_from_env;
pub use env::with_env_password;
pub use wait::{Wait, WaitError};

use crate::{
    Job,
    job::encode,
    model::{
        Envelope, EnvelopeBuilder, JobId, Kind, MAX_BATCH, MAX_BATCH_BYTES, Namespace, Partition,
        QueueName, StoreError, Unique, When,
    },
    store::{BatchError, Enqueued, MemoryStore, Outcomes, RedisStore, Store},
};
use futures_util::future::BoxFuture;
use std::{future::IntoFuture, sync::Arc, time::Duration};

/// Enqueues jobs. Cheap to clone; one per process is enough.
#[derive(Clone, Debug)]
pub struct Client {
    store: Arc<dyn Store>,
    max_payload: usize,
    waits: Arc<bus::Waits>,
}

impl Client {
    /// Opens the store that the URL names: `redis://…`, `redis+unix://…`, or `memory://` for a try
    /// inside one process. Connects at the first call.
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
        let (max_payload, waits) = (crate::model::MAX_PAYLOAD, Arc::default());
        Self { store: Arc::new(store), max_payload, waits }
    }

    /// Allows payloads of up to so many bytes, at most 8 MiB. Default 1 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
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
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue {
        let max_payload = self.max_payload;
        let builder = builder(&job).map(|builder| builder.max_payload(max_payload));
        Enqueue { client: self.clone(), builder }
    }

    /// Enqueues many jobs with their types' options, each judged by itself: a result per job, in
    /// order. For options or ids of their own, make each by [`Enqueue::envelope`] and hand them to
    /// [`enqueue_envelopes`](Client::enqueue_envelopes).
    ///
    /// # Errors
    /// `Invalid` if a job cannot be encoded, before anything is sent; `Unavailable` or `Backend` if
    /// a call failed: some jobs may have been enqueued, under ids that the caller does not know. Who
    /// wants to repeat that safely gives them ids or unique keys.
    pub async fn enqueue_many<J: Job>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Result<Outcomes<Enqueued>, StoreError> {
        let build = |job| builder(&job)?.max_payload(self.max_payload).build();
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
            outcomes.extend(self.store.enqueue(call[0].queue(), call).await?);
        }
        Ok(outcomes)
    }

    /// Enqueues all jobs or none. They must be of one queue, at most 1,000 and 8 MiB.
    ///
    /// # Errors
    /// The first offender's index and error; nothing was written.
    pub async fn enqueue_atomic(&self, jobs: &[Envelope]) -> Result<Vec<Enqueued>, BatchError> {
        match jobs.first() {
            Some(first) => self.store.enqueue_atomic(first.queue(), jobs).await,
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
    if let Some(retention) = J::RETENTION {
        builder = builder.retention(retention);
    }
    if let Some(unique) = job.unique() {
        builder = builder.unique(unique);
    }
    Ok(builder)
}

/// One job on its way: options, then `.await`.
#[derive(Debug)]
#[must_use = "a job is enqueued by .await"]
pub struct Enqueue {
    client: Client,
    builder: Result<EnvelopeBuilder, StoreError>,
}

impl Enqueue {
    fn with(self, change: impl FnOnce(EnvelopeBuilder) -> EnvelopeBuilder) -> Self {
        self.try_with(|builder| Ok(change(builder)))
    }

    /// The first option out of bounds is what `.await` answers.
    fn try_with(
        mut self,
        change: impl FnOnce(EnvelopeBuilder) -> Result<EnvelopeBuilder, StoreError>,
    ) -> Self {
        self.builder = self.builder.and_then(change);
        self
    }

    /// Another queue than the type's: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub fn queue(self, queue: impl AsRef<str>) -> Self {
        self.try_with(|job| Ok(job.queue(QueueName::new(queue)?)))
    }

    /// An id of the caller's own, 1 to 128 printable ASCII characters: a repeat with the same id and
    /// content is answered *existing*.
    pub fn id(self, id: impl AsRef<str>) -> Self {
        self.try_with(|job| Ok(job.id(JobId::new(id)?)))
    }

    /// Due so long after Redis has accepted it: whole ms, 1 ms to 10 years.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|job| job.run_at(When::In(delay)))
    }

    /// Due at a moment of Redis' clock; a past one is now.
    pub fn run_at(self, when: impl Into<When>) -> Self {
        let when = when.into();
        self.with(|job| job.run_at(when))
    }

    /// 0 to 9, higher first, 4 by default.
    pub fn priority(self, priority: u8) -> Self {
        self.with(|job| job.priority(priority))
    }

    /// Failed attempts before the job is archived: 1 to 1,000, 25 by default. When the next one comes
    /// is the worker's [`backoff`](crate::worker::WorkerBuilder::backoff).
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with(|job| job.max_attempts(attempts))
    }

    /// How long one attempt may take.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|job| job.timeout(timeout))
    }

    /// How long the finished job is kept: see [`Envelope::retention`].
    pub fn retention(self, retention: Duration) -> Self {
        self.with(|job| job.retention(retention))
    }

    /// A unique key of 1 to 256 bytes, held until the job is finished.
    pub fn unique_key(self, key: impl AsRef<[u8]>) -> Self {
        self.unique(Unique::key(key))
    }

    /// A unique key with all its options.
    pub fn unique(self, unique: Unique) -> Self {
        self.with(|job| job.unique(unique))
    }

    /// The tenant inside the queue: at most 128 bytes. Stored and shown.
    pub fn partition(self, partition: impl AsRef<str>) -> Self {
        self.try_with(|job| Ok(job.partition(Partition::new(partition)?)))
    }

    /// Adds a header.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|job| job.header(name, value))
    }

    /// The envelope, for a batch of the caller's own.
    ///
    /// # Errors
    /// `Invalid` naming field, value and bound.
    pub fn envelope(self) -> Result<Envelope, StoreError> {
        self.builder?.build()
    }
}

impl IntoFuture for Enqueue {
    type Output = Result<Enqueued, StoreError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let store = self.client.store.clone();
            let job = [self.envelope()?];
            let outcomes = store.enqueue(job[0].queue(), &job).await;
            let mut outcomes = outcomes.map_err(|error| unsure(error, job[0].id()))?;
            outcomes.pop().unwrap_or_else(|| Err(StoreError::Backend("no outcome".into())))
        })
    }
}

/// Of a call that failed it is not known what it did: its error names the job, so that the same
/// enqueue with this id finds out.
fn unsure(error: StoreError, id: &JobId) -> StoreError {
    let with_id = |text: String| format!("{text}; job {id} may have been enqueued");
    match error {
        StoreError::Unavailable(text) => StoreError::Unavailable(with_id(text)),
        StoreError::Backend(text) => StoreError::Backend(with_id(text)),
        refused => refused,
    }
}

/// Turns `Duplicate` into the id of the job that holds the key.
pub trait OrJoin {
    /// The id of the new job, or of the one that was there.
    ///
    /// # Errors
    /// Every error but `Duplicate`.
    fn or_join(self) -> Result<JobId, StoreError>;
}

impl OrJoin for Result<Enqueued, StoreError> {
    fn or_join(self) -> Result<JobId, StoreError> {
        match self {
            Ok(enqueued) => Ok(enqueued.id),
            Err(StoreError::Duplicate { existing_id, .. }) => JobId::new(existing_id),
            Err(error) => Err(error),
        }
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
