//! The store in plain Rust, to be read as the specification: `verbs` says what each verb does,
//! `queue` how a job moves, `job` what there is to know of one.

mod clock;
mod job;
mod queue;
mod verbs;

pub use clock::ManualClock;

use self::{clock::Clock, queue::Queue};
use super::{
    Archive, BatchError, Change, Claim, Complete, Enqueued, Held, JobInfo, Outcomes, Pace,
    QueueInfo, Retry, Snooze, Store, Swept, check_batch, check_count, check_enqueue, check_limit,
};
use crate::model::{
    Envelope, JobId, QueueName, State, StoreError, Timestamp, WorkerId, checked_lease,
};
use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// A store inside this process: for unit tests and a first try. It obeys the same contract as
/// `RedisStore`, and forgets everything when it is dropped.
///
/// ```
/// use sprag::{Envelope, Kind, ManualClock, MemoryStore, QueueName, Store, Timestamp, WorkerId};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sprag::StoreError> {
/// let clock = ManualClock::at(Timestamp::from_millis(1_764_500_000_000));
/// let store = MemoryStore::with_clock(clock.clone());
/// let (queue, worker) = (QueueName::new("email")?, WorkerId::new("w1")?);
/// let job = Envelope::builder(queue.clone(), Kind::new("email:welcome")?).build()?;
/// store.enqueue(&queue, &[job.clone()]).await?;
///
/// let claim = store.claim(&queue, &worker, 10, Duration::from_secs(30)).await?;
/// assert_eq!(claim.jobs[0].id, *job.id());
/// # Ok(())
/// # }
/// ```
pub struct MemoryStore {
    clock: Clock,
    shelf: Mutex<Shelf>,
    /// Tells everybody who waits that a token was left.
    token_left: Notify,
}

#[derive(Default)]
struct Shelf {
    queues: BTreeMap<QueueName, Queue>,
    /// Queues with a wake token.
    tokens: HashSet<QueueName>,
}

impl MemoryStore {
    /// An empty store on this machine's clock.
    pub fn new() -> Self {
        Self::on(Clock::System)
    }

    /// An empty store on a clock that the caller moves.
    pub fn with_clock(clock: ManualClock) -> Self {
        Self::on(Clock::Manual(clock))
    }

    fn on(clock: Clock) -> Self {
        Self { clock, shelf: Mutex::default(), token_left: Notify::new() }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a verb on a queue, and leaves a wake token if the verb asks for it. A queue that does
    /// not exist is empty, and exists afterwards only if the verb made it.
    fn on_queue<T>(&self, name: &QueueName, verb: impl FnOnce(&mut Queue, Timestamp) -> T) -> T {
        let mut shelf = self.shelf();
        let now = self.clock.now();
        let mut absent = Queue::default();
        let queue = shelf.queues.get_mut(name).unwrap_or(&mut absent);
        let answer = verb(queue, now);
        let wake = std::mem::take(&mut queue.wake);
        if absent.made {
            shelf.queues.insert(name.clone(), absent);
        }
        if wake {
            self.leave_token(&mut shelf, name);
        }
        answer
    }

    fn leave_token(&self, shelf: &mut Shelf, queue: &QueueName) {
        if shelf.tokens.insert(queue.clone()) {
            self.token_left.notify_waiters();
        }
    }

    fn take_token(&self, queues: &[QueueName]) -> Option<QueueName> {
        let mut shelf = self.shelf();
        queues.iter().find_map(|queue| shelf.tokens.take(queue))
    }

    /// Looks now and whenever a token was left, until the look finds something.
    async fn look<T>(&self, mut find: impl FnMut() -> Option<T>) -> T {
        loop {
            // Interest first, then the look: a token left between the two is not missed, because
            // a `Notified` hears of every `notify_waiters` since it was made.
            let left = self.token_left.notified();
            if let Some(found) = find() {
                return found;
            }
            left.await;
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// Boundary first, then the verb on each item.
#[async_trait::async_trait]
impl Store for MemoryStore {
    async fn enqueue(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Outcomes<Enqueued>, StoreError> {
        let checks = check_enqueue(queue, jobs)?;
        Ok(self.on_queue(queue, |on, now| {
            let items = jobs.iter().zip(checks);
            items.map(|(job, check)| check.and_then(|()| on.enqueue(job, now))).collect()
        }))
    }

    async fn enqueue_atomic(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Vec<Enqueued>, BatchError> {
        for (index, check) in check_enqueue(queue, jobs)?.into_iter().enumerate() {
            check.map_err(|error| BatchError { index: Some(index), error })?;
        }
        self.on_queue(queue, |on, now| on.enqueue_atomic(jobs, now))
    }

    async fn claim(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        count: usize,
        lease: Duration,
    ) -> Result<Claim, StoreError> {
        check_count(count)?;
        checked_lease(lease)?;
        let jobs = self.on_queue(queue, |on, now| on.claim(worker, count, lease, now));
        Ok(Claim { jobs, more: false })
    }

    async fn extend(
        &self,
        queue: &QueueName,
        held: &[Held],
        lease: Duration,
    ) -> Result<Outcomes<()>, StoreError> {
        check_batch(held.len())?;
        checked_lease(lease)?;
        Ok(self.on_queue(queue, |on, now| {
            held.iter().map(|held| on.extend(held, lease, now)).collect()
        }))
    }

    async fn complete(
        &self,
        queue: &QueueName,
        jobs: &[Complete],
    ) -> Result<Outcomes<()>, StoreError> {
        check_batch(jobs.len())?;
        Ok(self.on_queue(queue, |on, now| jobs.iter().map(|job| on.complete(job, now)).collect()))
    }

    async fn retry(
        &self,
        queue: &QueueName,
        jobs: &[Retry],
    ) -> Result<Outcomes<State>, StoreError> {
        check_batch(jobs.len())?;
        Ok(self.on_queue(queue, |on, now| jobs.iter().map(|job| on.retry(job, now)).collect()))
    }

    async fn archive(
        &self,
        queue: &QueueName,
        jobs: &[Archive],
    ) -> Result<Outcomes<()>, StoreError> {
        check_batch(jobs.len())?;
        Ok(self.on_queue(queue, |on, now| jobs.iter().map(|job| on.archive(job, now)).collect()))
    }

    async fn snooze(&self, queue: &QueueName, jobs: &[Snooze]) -> Result<Outcomes<()>, StoreError> {
        check_batch(jobs.len())?;
        Ok(self.on_queue(queue, |on, now| jobs.iter().map(|job| on.snooze(job, now)).collect()))
    }

    async fn requeue(&self, queue: &QueueName, held: &[Held]) -> Result<Outcomes<()>, StoreError> {
        check_batch(held.len())?;
        Ok(self.on_queue(queue, |on, _| on.requeue(held)))
    }

    async fn sweep(&self, queue: &QueueName, pace: Pace) -> Result<Swept, StoreError> {
        Ok(self.on_queue(queue, |on, now| on.sweep(pace, now)))
    }

    async fn cancel(
        &self,
        queue: &QueueName,
        ids: &[JobId],
    ) -> Result<Outcomes<Change>, StoreError> {
        check_batch(ids.len())?;
        Ok(self.on_queue(queue, |on, now| ids.iter().map(|id| on.cancel(id, now)).collect()))
    }

    async fn limit(&self, queue: &QueueName, limit: Option<u64>) -> Result<(), StoreError> {
        check_limit(limit)?;
        self.on_queue(queue, |on, _| on.set_limit(limit));
        Ok(())
    }

    async fn show(&self, queue: &QueueName, id: &JobId) -> Result<JobInfo, StoreError> {
        self.on_queue(queue, |on, _| on.show(id))
    }

    async fn queue(&self, queue: &QueueName) -> Result<QueueInfo, StoreError> {
        self.on_queue(queue, |on, now| on.info(queue, now))
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StoreError> {
        Ok(self.shelf().queues.keys().cloned().collect())
    }

    async fn wait(
        &self,
        queues: &[QueueName],
        timeout: Duration,
    ) -> Result<Option<QueueName>, StoreError> {
        let token = self.look(|| self.take_token(queues));
        Ok(tokio::time::timeout(timeout, token).await.ok())
    }

    async fn wake(&self, queue: &QueueName) -> Result<(), StoreError> {
        self.leave_token(&mut self.shelf(), queue);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
