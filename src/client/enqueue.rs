//! One job on its way: its options, and its answer.

use super::{Client, in_trace};
use crate::{
    model::{Envelope, EnvelopeBuilder, JobId, Partition, QueueName, StoreError, Unique, When},
    store::{Durability, Enqueued},
    trace::{self, TraceParent},
};
use futures_util::future::BoxFuture;
use std::{fmt, future::IntoFuture, time::Duration};

/// One job on its way: options, then `.await`.
#[derive(Debug)]
#[must_use = "a job is enqueued by .await"]
pub struct Enqueue {
    pub(super) client: Client,
    pub(super) builder: Result<EnvelopeBuilder, StoreError>,
    /// The span that it was made in.
    pub(super) inherited: Option<TraceParent>,
    pub(super) durability: Option<Durability>,
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

    /// How long one attempt may take: whole ms, 1 ms to 10 years.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|job| job.timeout(timeout))
    }

    /// When the job is no longer worth running, by Redis' clock: then it is archived as `expired`, and
    /// a handler that runs is told to stop. A past one is refused as `Invalid`. In place of the
    /// type's [`DEADLINE`](crate::Job::DEADLINE).
    pub fn deadline(self, when: impl Into<When>) -> Self {
        let when = when.into();
        self.with(|job| job.deadline(when))
    }

    /// How long the finished job is kept: see [`Envelope::retention`].
    pub fn retention(self, retention: Duration) -> Self {
        self.with(|job| job.retention(retention))
    }

    /// How long the job's identity, its [`id`](Enqueue::id) and content, outlives its record: whole
    /// ms, 1 ms to 10 years. For whoever repeats an enqueue by himself, perhaps after the job is done
    /// and gone: the repeat is answered *existing*, with no state.
    pub fn remember(self, remember: Duration) -> Self {
        self.with(|job| job.remember(remember))
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

    /// The span that the job belongs to: a [`TraceParent`], or its text. Unless it is set, by this or
    /// as the header `traceparent`, a job enqueued by a handler belongs to the span of that run, and
    /// any other to what [`traceparent_from`](Client::traceparent_from) says.
    pub fn traceparent(self, span: impl fmt::Display) -> Self {
        self.try_with(|job| {
            let span: TraceParent = span.to_string().parse()?;
            Ok(job.header(trace::HEADER, span.to_string()))
        })
    }

    /// Answers only when so many replicas have the job, waiting for them as long as the timeout says;
    /// see [`Durability::replicas`]. `Unavailable` if they do not have it in time: the job is enqueued,
    /// but may be lost with its server. The same enqueue with its [`id`](Enqueue::id) is safe, and waits
    /// again. A job that holds the [`unique_key`](Enqueue::unique_key) is waited for in the same way before
    /// it is told of as [`Duplicate`](crate::StoreError::Duplicate).
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct Charge { cents: u64 }
    /// # impl sprag::Job for Charge { const KIND: &'static str = "charge"; }
    /// # async fn example(client: sprag::Client) -> Result<(), sprag::StoreError> {
    /// use std::time::Duration;
    /// let charge = client.enqueue(Charge { cents: 995 }).id("order-7");
    /// charge.replicas(1, Duration::from_millis(500)).await?;
    /// # Ok(()) }
    /// ```
    pub fn replicas(self, replicas: u8, timeout: Duration) -> Self {
        Self { durability: Some(self.asked().replicas(replicas, timeout)), ..self }
    }

    /// Answers only when the server has the job on its disk; see [`Durability::fsync`]. Too late is
    /// `Unavailable`, as with [`replicas`](Enqueue::replicas); a server that cannot tell is `Backend`,
    /// and nothing was enqueued.
    pub fn fsync(self, timeout: Duration) -> Self {
        Self { durability: Some(self.asked().fsync(timeout)), ..self }
    }

    fn asked(&self) -> Durability {
        self.durability.unwrap_or_default()
    }

    /// The envelope, for a batch of the caller's own, which knows nothing of
    /// [`replicas`](Enqueue::replicas) and [`fsync`](Enqueue::fsync): see [`Client::durable`].
    ///
    /// # Errors
    /// `Invalid` naming field, value and bound.
    pub fn envelope(self) -> Result<Envelope, StoreError> {
        in_trace(self.builder?, self.inherited).build()
    }
}

impl IntoFuture for Enqueue {
    type Output = Result<Enqueued, StoreError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let client = match self.durability {
                None => self.client.clone(),
                Some(durability) => self.client.durable(durability)?,
            };
            client.gather.enqueue(&client.store, self.envelope()?).await
        })
    }
}

/// Of a call that failed it is not known what it did: its error names the job, so that the same
/// enqueue with this id finds out.
pub(super) fn unsure(error: StoreError, id: &JobId) -> StoreError {
    error.of_enqueue(&format!("job {id}"))
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
