//! The state machine behind one trait: a method per verb, slices in, one result per item.
//!
//! [`MemoryStore`] is plain Rust, to be read as the specification; [`RedisStore`] does the same in
//! Lua scripts inside Redis. One contract suite holds them equal.

mod durability;
mod events;
mod memory;
mod operate;
mod redis;
mod registry;
mod settle;
mod views;

pub use durability::Durability;
pub use events::{Channel, Event, Events, Wish};
pub use memory::{ManualClock, MemoryStore};
pub use operate::{Operation, Setting};
pub use redis::{Callers, Doctor, Examined, Finding, RedisStore, RedisStoreBuilder, Severity};
pub(crate) use registry::BEAT;
pub use registry::{RunningJob, WorkerInfo, WorkerState};
pub use settle::{Archive, ArchiveReason, Complete, Held, MAX_ERROR, MAX_RESULT, Retry, Snooze};
pub use views::{
    Change, Claim, Claimed, Day, Ended, Ending, EndingReason, Enqueued, Failure, Holder, JobInfo,
    Listed, Page, Quarantine, QueueInfo, Released, Swept,
};

use crate::model::{
    Envelope, Fingerprint, JobId, Kind, MAX_BATCH, MAX_BATCH_BYTES, QueueName, State, StoreError,
    WorkerId,
};
use std::{sync::Arc, time::Duration};

/// One result per item of the slice that was handed in, in its order.
pub type Outcomes<T> = Vec<Result<T, StoreError>>;

/// How long a job waits after its second crash; four times as long after each further one. After the
/// first it is put back at once.
pub(crate) const CRASH_BACKOFF: Duration = Duration::from_secs(5);
/// How long an archived job is kept unless its own retention is longer.
pub(crate) const ARCHIVED_RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long a cancelled job is kept unless its own retention is longer.
pub(crate) const CANCELLED_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// The last so many failures of a job are kept.
pub(crate) const MAX_FAILURES: usize = 20;
/// Crashes of a fingerprint that put it into quarantine, unless the queue says otherwise.
pub(crate) const CRASH_LIMIT: u32 = 3;
/// Within which they are counted together, unless the queue says otherwise.
pub(crate) const CRASH_WINDOW: Duration = Duration::from_secs(24 * 3600);

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
    /// Promotes what is due and does nothing else. For workers after an outage: whoever lives shall
    /// extend its leases first.
    Promote,
    /// Reclaims and evicts only if nobody has done so on this queue for a second. For workers. While
    /// the store is away it is not repeated for longer than a second.
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
    /// * *existing*, if its id names a job in this queue, or one that is remembered, of the same
    ///   first content: nothing is written, and the answer tells the state of that job;
    /// * `IdConflict`, if that content differs;
    /// * `Invalid`, if its deadline is past;
    /// * `Quarantined`, if its fingerprint is;
    /// * `Duplicate`, if its unique key is held: a lifecycle or debounce key by an unfinished job, a
    ///   throttle key by a window that is not over. `replaced` if it writes into the holder, which
    ///   must have its kind and be pending, scheduled or retry: the fields that it is to
    ///   [`replace`](crate::Unique::replace); with debounce the payload and, while the holder is
    ///   scheduled, its due time: now + window, at most its enqueue + max_wait;
    /// * `Backpressure` with `incoming: 1`, if unfinished + 1 > limit;
    /// * else written: `scheduled` if due later by the store's clock, or `pending` at the back of
    ///   its lane; with debounce due after the window. A field out of bounds is `Invalid` before
    ///   anything else.
    ///
    /// A replaced due time moves a scheduled or pending job to where it belongs by it, a retry job
    /// stays in retry unless it is due now; a replaced priority moves a pending job to the back of
    /// its new lane.
    async fn enqueue(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Outcomes<Enqueued>, StoreError>;

    /// Admits all jobs or none. *Existing* is no offence; any `Duplicate` is, and replaces nothing. Backpressure is judged last, with
    /// `incoming` being all that would be written, and names the batch as a whole (no index).
    async fn enqueue_atomic(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Vec<Enqueued>, BatchError>;

    /// Takes up to `count` (1 to 1,000) pending jobs, higher priorities first, oldest first in a
    /// lane, and makes lease and fence. All jobs of a call share one fence, which is
    /// max(the queue's last fence + 1, now in µs). A queue that does not exist, or is paused, is
    /// empty. Jobs met whose deadline has passed, or that cannot be decoded, are archived, those whose
    /// fingerprint is quarantined join it: [`Claim::ended`] tells them. A debounce key is free from
    /// here on.
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

    /// Active → retry with attempt + 1; or archived, `exhausted` if that reaches `max_attempts`,
    /// else `expired` if it would not be due before its deadline. The answer tells which.
    async fn retry(&self, queue: &QueueName, jobs: &[Retry])
    -> Result<Outcomes<State>, StoreError>;

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

    /// Does what time has made due, all of it, in this order:
    /// * expires scheduled, pending and retry jobs whose deadline has passed: archived `expired`;
    /// * promotes scheduled and retry jobs whose time has come, earliest first, of one moment by id,
    ///   to the back;
    /// * reclaims expired leases. The job's crash + 1. The fingerprint's crash + 1, if it was claimed
    ///   after the last one that counted (one death is one crash) and within the window, else it
    ///   begins a new window; at the crash limit it is put into quarantine. Then: past its
    ///   deadline → archived `expired`; the fingerprint in quarantine → quarantined; the job's first
    ///   crash → pending at the back; later ones → retry (5 s × 4^(crash − 2) ± 50 %, at most 10
    ///   years). A lease without a record is dropped and no longer counted;
    /// * evicts finished jobs whose retention is over, or archived ones beyond `MaxArchived`, the
    ///   oldest first, with all that is kept of them;
    /// * sets right the count of unfinished jobs, should a half-done call or somebody's hand have
    ///   made it wrong;
    /// * gives a job that has a holder but no lease an expired one, so that the next sweep
    ///   reclaims it; forgets throttle windows, remembered identities and crash windows that are
    ///   over, and counters of days more than 90 days ago.
    ///
    /// A completion of a fingerprint forgets its crashes.
    async fn sweep(&self, queue: &QueueName, pace: Pace) -> Result<Swept, StoreError>;

    /// What an operator does to jobs; see [`Operation`]. In the state that the verb leads to already:
    /// unchanged. In a state that forbids the verb: `Invalid`; no such job: `NotFound`. Limits are
    /// not looked at.
    async fn operate(
        &self,
        queue: &QueueName,
        operation: Operation,
        ids: &[JobId],
    ) -> Result<Outcomes<Change>, StoreError>;

    /// Changes settings of a queue, all or none. Makes the queue if need be.
    async fn set(&self, queue: &QueueName, settings: &[Setting]) -> Result<(), StoreError>;

    /// Closes a fingerprint to enqueue and claim, with an operator's reason (cut at 4 KiB).
    /// Unchanged if it is closed already. Makes the queue if need be.
    async fn quarantine(
        &self,
        queue: &QueueName,
        fingerprint: &Fingerprint,
        reason: Option<&str>,
    ) -> Result<Change, StoreError>;

    /// Opens a fingerprint and forgets its crashes; then moves its quarantined jobs, oldest first, to
    /// pending at the back, crashes at zero, the unique key taken again; a job whose key another
    /// holds now is archived `unique_key_taken`. Broken off, it is to be called again and goes on
    /// with what is left. `NotFound` if the fingerprint is not in quarantine and no job of it is.
    async fn release(
        &self,
        queue: &QueueName,
        fingerprint: &Fingerprint,
    ) -> Result<Released, StoreError>;

    /// The fingerprints in quarantine, sorted.
    async fn quarantines(&self, queue: &QueueName) -> Result<Vec<Quarantine>, StoreError>;

    /// Jobs of a state: pending in the order of their lanes, others by the time in [`Listed::at`];
    /// those of one kind only, if named. A page has at most `limit` (1 to 1,000) jobs and begins
    /// at the cursor of the page before. While jobs move, a job may be seen twice or not at all.
    async fn list(
        &self,
        queue: &QueueName,
        state: State,
        kind: Option<&Kind>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// The counters of the last so many days (1 to 90), today first.
    async fn days(&self, queue: &QueueName, days: u32) -> Result<Vec<Day>, StoreError>;

    /// Deletes a queue with all that is in it. `Invalid` if it has unfinished jobs and is not
    /// forced; `NotFound` if nobody has made it. Leaves no key.
    async fn delete_queue(&self, queue: &QueueName, force: bool) -> Result<(), StoreError>;

    /// Keeps what a running job says of its progress, a JSON text of at most 4 KiB; gone with the
    /// run. `LeaseRejected` if (id, fence) does not hold the job.
    async fn progress(
        &self,
        queue: &QueueName,
        held: &Held,
        progress: &str,
    ) -> Result<(), StoreError>;

    /// Everything known of a job; `NotFound` if there is none, also if its identity is remembered.
    async fn show(&self, queue: &QueueName, id: &JobId) -> Result<JobInfo, StoreError>;

    /// A queue's counters; `NotFound` if nobody has made it.
    async fn queue(&self, queue: &QueueName) -> Result<QueueInfo, StoreError>;

    /// The queues of this namespace, sorted.
    async fn queues(&self) -> Result<Vec<QueueName>, StoreError>;

    /// Puts those of the queues that somebody has made on the list again, should they have been lost
    /// from it: who made one may have died before it was listed. For workers, now and then.
    async fn register(&self, queues: &[QueueName]) -> Result<(), StoreError>;

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

    /// Listens to what happens in the namespace. From the moment at which this answers no event is
    /// missed without an [`Event::Gap`]; before that, any may be: listen first, then look. It goes
    /// on, whatever becomes of connections, until the [`Events`] are dropped.
    async fn listen(&self, channel: Channel) -> Result<Events, StoreError>;

    /// Lets the ends of this queue's jobs be told on [`Channel::Done`] for so long from now, if they
    /// are not told for longer already: who goes on waiting says so again in time. Does nothing to a
    /// queue that nobody has made.
    async fn watch(&self, queue: &QueueName, for_: Duration) -> Result<(), StoreError>;

    /// Puts a worker on the namespace's list, or renews what is said of it there, with the time of
    /// the store's clock. Of its jobs the first 100 are listed. Answers what the worker is
    /// [asked](Store::ask) to do, again at every beat.
    async fn beat(&self, worker: &WorkerInfo) -> Result<Option<Wish>, StoreError>;

    /// Asks a worker to be quiet, or to stop: told on [`Channel::Control`] and at each of its beats.
    /// There is no way back: quiet, after stop was asked for, changes nothing. `NotFound` if the
    /// worker is not on the list, or was not heard of within the hour.
    async fn ask(&self, worker: &WorkerId, wish: Wish) -> Result<(), StoreError>;

    /// Takes a worker off the list, with what it is asked. One that is not on it is no error.
    async fn retire(&self, worker: &WorkerId) -> Result<(), StoreError>;

    /// The workers of the namespace, sorted by id: those heard of within the hour; older ones are
    /// dropped from the list.
    async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError>;

    /// The same store over connections of its own, made at their first use: for another thread, with
    /// a runtime of its own. What drives a connection lives on the runtime on which it was first
    /// used, and stands still, or ends, with that.
    fn apart(&self) -> Arc<dyn Store>;

    /// The same store and connections, whose `enqueue` and `enqueue_atomic` answer only when what they
    /// wrote is as durable as is asked. A job that was written and is not so durable in time is
    /// `Unavailable`, and its text says so: it may be lost with the server. The same job with its id
    /// again is safe, and waits again. A store that keeps jobs nowhere else takes all for done.
    fn durable(&self, durability: Durability) -> Arc<dyn Store>;

    /// Whether the store can be reached and used now: asked once, without a repeat.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be reached or does not serve now; `Backend`, with what to do, if it
    /// refuses this user, or is none that keeps what is promised here.
    async fn ready(&self) -> Result<(), StoreError>;
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
    Ok(())
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

/// Checks a listing's page size.
pub(crate) fn check_page(limit: usize) -> Result<(), StoreError> {
    if !(1..=1_000).contains(&limit) {
        return Err(StoreError::invalid("limit", limit, "1 to 1000"));
    }
    Ok(())
}

/// Checks for how many days counters are asked.
pub(crate) fn check_days(days: u32) -> Result<(), StoreError> {
    if !(1..=90).contains(&days) {
        return Err(StoreError::invalid("days", days, "1 to 90"));
    }
    Ok(())
}

/// Checks a progress text's size.
pub(crate) fn check_progress(progress: &str) -> Result<(), StoreError> {
    if progress.len() > 4 << 10 {
        let bytes = format!("{} bytes", progress.len());
        return Err(StoreError::invalid("progress", bytes, "at most 4096 bytes"));
    }
    Ok(())
}
