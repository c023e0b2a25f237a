//! The state machine behind one trait: a method per verb, slices in, one result per item.
//!
//! [`MemoryStore`] is plain Rust, to be read as the specification; [`RedisStore`] does the same in
//! Lua scripts inside Redis. One contract suite holds them equal.

mod memory;
mod redis;
mod settle;
mod views;

pub use memory::{ManualClock, MemoryStore};
pub use redis::{Callers, RedisStore, RedisStoreBuilder};
pub use settle::{Archive, ArchiveReason, Complete, Held, MAX_ERROR, MAX_RESULT, Retry, Snooze};
pub use views::{
    Change, Claim, Claimed, Ending, EndingReason, Enqueued, Failure, Holder, JobInfo, QueueInfo,
    Swept,
};

use crate::model::{Envelope, JobId, MAX_BATCH, MAX_BATCH_BYTES, QueueName, StoreError, WorkerId};
use std::time::Duration;

/// One result per item of the slice that was handed in, in its order.
pub type Outcomes<T> = Vec<Result<T, StoreError>>;

/// Crashes of a job before it is no longer put back at once: the first costs nothing.
pub(crate) const CRASH_BACKOFF: Duration = Duration::from_secs(5);
/// How long an archived job is kept unless its own retention is longer.
pub(crate) const ARCHIVED_RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long a cancelled job is kept unless its own retention is longer.
pub(crate) const CANCELLED_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// The last so many failures of a job are kept.
pub(crate) const MAX_FAILURES: usize = 20;
/// The highest limit: the whole numbers that Lua holds without loss.
pub(crate) const MAX_LIMIT: u64 = 1 << 53;

/// Why an atomic batch wrote nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{error}", index.map(|i| format!("job {i} of the batch: ")).unwrap_or_default())]
pub struct BatchError {
    /// The first offender's place in the slice; none if the call as a whole failed.
    pub index: Option<usize>,
    /// What is wrong.
    #[source]
    pub error: StoreError,
}

impl From<StoreError> for BatchError {
    fn from(error: StoreError) -> Self {
        Self { index: None, error }
    }
}

/// Whether a sweep may leave the slow work to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Reclaims and evicts only if nobody has done so on this queue for a second. For workers.
    Shared,
    /// Does everything now. For people and tests.
    Now,
}

/// Every change of a job's state. Nobody else speaks to the store.
///
/// A method takes at most [`MAX_BATCH`] items of one queue; more, or a batch of over
/// [`MAX_BATCH_BYTES`], is `Invalid`; an empty slice is an empty answer without a call. Items are judged
/// in order, as if each were a call of its own. A fenced verb answers `LeaseRejected` for an item
/// whose (id, fence) does not hold the job, and never `NotFound`.
///
/// # Errors
/// Every method: `Unavailable` or `Backend` for the call as a whole.
///
/// # Cancel safety
/// Dropping a future loses the answer; the call may have been applied.
#[async_trait::async_trait]
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Admits jobs one by one. In this order an item is
    /// * *existing*, if its id names a job in this queue with the same fingerprint: nothing is
    ///   written, and the answer tells the state of that job;
    /// * `IdConflict`, if that fingerprint differs;
    /// * `Duplicate`, if its unique key is held by an unfinished job;
    /// * `Backpressure` with `incoming: 1`, if unfinished + 1 > limit;
    /// * else written: `scheduled` if due later by the store's clock, or `pending` at the back of
    ///   its lane. A field that is not yet supported, or a bound, is `Invalid` before anything else.
    async fn enqueue(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Outcomes<Enqueued>, StoreError>;

    /// Admits all jobs or none. *Existing* is no offence. Backpressure is judged last, with
    /// `incoming` being all that would be written, and names the batch as a whole (no index).
    async fn enqueue_atomic(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Vec<Enqueued>, BatchError>;

    /// Takes up to `count` (1 to 1,000) pending jobs, higher priorities first, oldest first in a
    /// lane, and makes lease and fence. All jobs of a call share one fence, which is
    /// max(the queue's last fence + 1, now in µs). A queue that does not exist is empty.
    async fn claim(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        count: usize,
        lease: Duration,
    ) -> Result<Claim, StoreError>;

    /// Lets the leases end `lease` from now. One that has run out, but was not reclaimed, counts.
    async fn extend(
        &self,
        queue: &QueueName,
        held: &[Held],
        lease: Duration,
    ) -> Result<Outcomes<()>, StoreError>;

    /// Active → completed, kept for its retention, or deleted if it has none.
    async fn complete(
        &self,
        queue: &QueueName,
        jobs: &[Complete],
    ) -> Result<Outcomes<()>, StoreError>;

    /// Active → retry with attempt + 1, or archived `exhausted` if that reaches `max_attempts`.
    /// The answer tells which.
    async fn retry(
        &self,
        queue: &QueueName,
        jobs: &[Retry],
    ) -> Result<Outcomes<crate::model::State>, StoreError>;

    /// Active → archived with the reason given.
    async fn archive(
        &self,
        queue: &QueueName,
        jobs: &[Archive],
    ) -> Result<Outcomes<()>, StoreError>;

    /// Active → scheduled. Neither attempt nor crash is counted.
    async fn snooze(&self, queue: &QueueName, jobs: &[Snooze]) -> Result<Outcomes<()>, StoreError>;

    /// Active → pending at the front of its lane. Neither attempt nor crash is counted. Of several
    /// the first of the slice is the first in the lane.
    async fn requeue(&self, queue: &QueueName, held: &[Held]) -> Result<Outcomes<()>, StoreError>;

    /// Does what time has made due, all of it:
    /// * promotes scheduled and retry jobs whose time has come, earliest first, to the back;
    /// * reclaims expired leases: crash + 1, then pending at the back after the first crash, retry
    ///   after later ones (5 s × 4^(crash − 2) ± 50 %, at most 10 years); a lease without a record
    ///   is dropped and no longer counted;
    /// * evicts finished jobs whose retention is over, with all that is kept of them;
    /// * sets right the count of unfinished jobs, should a half-done call or somebody's hand have
    ///   made it wrong;
    /// * gives a job that has a holder but no lease an expired one, so that the next sweep
    ///   reclaims it.
    async fn sweep(&self, queue: &QueueName, pace: Pace) -> Result<Swept, StoreError>;

    /// Unfinished → cancelled, also while active: its holder's fence is superseded. Cancelled →
    /// unchanged. Another finished job is `Invalid`; no job is `NotFound`.
    async fn cancel(
        &self,
        queue: &QueueName,
        ids: &[JobId],
    ) -> Result<Outcomes<Change>, StoreError>;

    /// Sets or lifts the limit of unfinished jobs. Makes the queue if need be.
    async fn limit(&self, queue: &QueueName, limit: Option<u64>) -> Result<(), StoreError>;

    /// Everything known of a job; `NotFound` if there is none.
    async fn show(&self, queue: &QueueName, id: &JobId) -> Result<JobInfo, StoreError>;

    /// A queue's counters; `NotFound` if nobody has made it.
    async fn queue(&self, queue: &QueueName) -> Result<QueueInfo, StoreError>;

    /// The queues of this namespace, sorted.
    async fn queues(&self) -> Result<Vec<QueueName>, StoreError>;

    /// Blocks until one of the queues has a wake token, takes it, and names the queue; none after
    /// the timeout. The token says "look", it is not the truth. Whoever takes one must claim, or
    /// put it back by [`wake`](Store::wake).
    async fn wait(
        &self,
        queues: &[QueueName],
        timeout: Duration,
    ) -> Result<Option<QueueName>, StoreError>;

    /// Leaves a wake token, if there is none.
    async fn wake(&self, queue: &QueueName) -> Result<(), StoreError>;
}

/// What every `enqueue` checks before any I/O: the batch's size, then each job by itself.
pub(crate) fn check_enqueue(
    queue: &QueueName,
    jobs: &[Envelope],
) -> Result<Vec<Result<(), StoreError>>, StoreError> {
    check_batch(jobs.len())?;
    let bytes: usize = jobs.iter().map(|job| job.payload.len()).sum();
    if bytes > MAX_BATCH_BYTES {
        let bound = format!("at most {MAX_BATCH_BYTES} bytes of payloads");
        return Err(StoreError::invalid("batch", format!("{bytes} bytes"), &bound));
    }
    Ok(jobs.iter().map(|job| check_job(queue, job)).collect())
}

fn check_job(queue: &QueueName, job: &Envelope) -> Result<(), StoreError> {
    if &job.queue != queue {
        return Err(StoreError::invalid("queue", &job.queue, &format!("{queue}, as the call's")));
    }
    job.check_supported()
}

/// Checks the number of items in one call.
pub(crate) fn check_batch(items: usize) -> Result<(), StoreError> {
    if items > MAX_BATCH {
        return Err(StoreError::invalid("batch", format!("{items} items"), "at most 1000"));
    }
    Ok(())
}

/// Checks how many jobs a claim asks for.
pub(crate) fn check_count(count: usize) -> Result<(), StoreError> {
    if !(1..=MAX_BATCH).contains(&count) {
        return Err(StoreError::invalid("count", count, "1 to 1000"));
    }
    Ok(())
}

/// Checks a queue's limit.
pub(crate) fn check_limit(limit: Option<u64>) -> Result<(), StoreError> {
    match limit {
        Some(limit) if limit > MAX_LIMIT => {
            Err(StoreError::invalid("limit", limit, &format!("at most {MAX_LIMIT}")))
        }
        _ => Ok(()),
    }
}
