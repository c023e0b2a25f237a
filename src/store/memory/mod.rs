//! The store in plain Rust, to be read as the specification: `verbs` has the table of states and
//! says which module has which verb, `queue` how a job moves, `job` what there is to know of one.

mod clock;
mod days;
mod enqueue;
mod job;
mod listeners;
mod operators;
mod quarantine;
mod queue;
mod settings;
mod time;
mod unique;
mod verbs;
mod views;
mod workers;

pub use clock::ManualClock;

use self::{clock::Clock, listeners::Listeners, queue::Queue};
use super::{
    Archive, BatchError, Change, Channel, Claim, Complete, Day, Durability, Enqueued, Event,
    Events, Held, JobInfo, Operation, Outcomes, Pace, Page, Quarantine, QueueInfo, Released, Retry,
    Setting, Snooze, Store, Swept, Wish, WorkerInfo, check_batch, check_count, check_days,
    check_enqueue, check_page,
};
use crate::model::{
    Envelope, Fingerprint, JobId, Kind, QueueName, State, StoreError, Timestamp, WorkerId, checked,
    checked_lease,
};
use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// A store inside this process: for unit tests and a first try. It obeys the same contract as
/// `RedisStore`, and forgets everything when it is dropped. Clones are the same store.
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
#[derive(Clone)]
pub struct MemoryStore(Arc<Inner>);

struct Inner {
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
    workers: BTreeMap<String, WorkerInfo>,
    /// What workers are asked, until they leave.
    wishes: BTreeMap<String, Wish>,
    listeners: Listeners,
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
        Self(Arc::new(Inner { clock, shelf: Mutex::default(), token_left: Notify::new() }))
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a verb on a queue, and leaves a wake token if something became claimable, or due before
    /// all else. A queue that does not exist is empty, and exists afterwards only if the verb made
    /// it.
    fn on_queue<T>(&self, name: &QueueName, verb: impl FnOnce(&mut Queue, Timestamp) -> T) -> T {
        let mut shelf = self.shelf();
        let now = self.0.clock.now();
        let mut absent = Queue::default();
        let queue = shelf.queues.get_mut(name).unwrap_or(&mut absent);
        let due_before = queue.next_due();
        let answer = verb(queue, now);
        // Whoever sleeps until the next due time has to sleep less.
        let earlier = queue.next_due().is_some_and(|due| due_before.is_none_or(|was| due < was));
        let wake = std::mem::take(&mut queue.wake) || earlier;
        let news = std::mem::take(&mut queue.news);
        if absent.made {
            shelf.queues.insert(name.clone(), absent);
        }
        if wake {
            self.leave_token(&mut shelf, name);
        }
        shelf.listeners.tell_news(name, news);
        answer
    }

    fn leave_token(&self, shelf: &mut Shelf, queue: &QueueName) {
        if shelf.tokens.insert(queue.clone()) {
            self.0.token_left.notify_waiters();
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
            let left = self.0.token_left.notified();
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
        f.debug_struct("MemoryStore").field("clock", &self.0.clock).finish_non_exhaustive()
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
        Ok(self.on_queue(queue, |on, now| on.claim(worker, count, lease, now)))
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

    async fn operate(
        &self,
        queue: &QueueName,
        operation: Operation,
        ids: &[JobId],
    ) -> Result<Outcomes<Change>, StoreError> {
        check_batch(ids.len())?;
        Ok(self.on_queue(queue, |on, now| {
            ids.iter().map(|id| on.operate(operation, id, now)).collect()
        }))
    }

    async fn set(&self, queue: &QueueName, settings: &[Setting]) -> Result<(), StoreError> {
        check_batch(settings.len())?;
        settings.iter().try_for_each(|setting| setting.check())?;
        self.on_queue(queue, |on, _| settings.iter().for_each(|setting| on.set(*setting)));
        Ok(())
    }

    async fn quarantine(
        &self,
        queue: &QueueName,
        fingerprint: &Fingerprint,
        reason: Option<&str>,
    ) -> Result<Change, StoreError> {
        Ok(self.on_queue(queue, |on, now| on.quarantine(*fingerprint, reason, now)))
    }

    async fn release(
        &self,
        queue: &QueueName,
        fingerprint: &Fingerprint,
    ) -> Result<Released, StoreError> {
        self.on_queue(queue, |on, now| on.release(*fingerprint, now))
    }

    async fn quarantines(&self, queue: &QueueName) -> Result<Vec<Quarantine>, StoreError> {
        Ok(self.on_queue(queue, |on, _| on.quarantines()))
    }

    async fn list(
        &self,
        queue: &QueueName,
        state: State,
        kind: Option<&Kind>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        check_page(limit)?;
        self.on_queue(queue, |on, _| on.list(state, kind, cursor, limit))
    }

    async fn days(&self, queue: &QueueName, days: u32) -> Result<Vec<Day>, StoreError> {
        check_days(days)?;
        Ok(self.on_queue(queue, |on, now| on.days.last(days, now)))
    }

    async fn delete_queue(&self, queue: &QueueName, force: bool) -> Result<(), StoreError> {
        let mut shelf = self.shelf();
        let absent = Queue::default();
        let found = shelf.queues.get(queue).unwrap_or(&absent);
        found.check_made(queue)?;
        if found.unfinished > 0 && !force {
            return Err(StoreError::invalid("unfinished", found.unfinished, "0 unless forced"));
        }
        shelf.queues.remove(queue);
        shelf.tokens.remove(queue);
        Ok(())
    }

    async fn progress(
        &self,
        queue: &QueueName,
        held: &Held,
        progress: &str,
    ) -> Result<(), StoreError> {
        self.on_queue(queue, |on, _| on.progress(held, progress))
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

    /// A queue is on the list because it is there.
    async fn register(&self, _queues: &[QueueName]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn listen(&self, channel: Channel) -> Result<Events, StoreError> {
        Ok(self.shelf().listeners.add(channel))
    }

    async fn watch(&self, queue: &QueueName, for_: Duration) -> Result<(), StoreError> {
        checked("watch", for_)?;
        self.on_queue(queue, |on, now| on.watched = on.watched.max(Some(now + for_)));
        Ok(())
    }

    async fn beat(&self, worker: &WorkerInfo) -> Result<Option<Wish>, StoreError> {
        let mut shelf = self.shelf();
        shelf.workers.insert(worker.id.clone(), worker.heard(self.0.clock.now()));
        Ok(shelf.wishes.get(&worker.id).copied())
    }

    async fn ask(&self, worker: &WorkerId, wish: Wish) -> Result<(), StoreError> {
        let (mut shelf, now) = (self.shelf(), self.0.clock.now());
        if shelf.workers.get(worker.as_str()).is_none_or(|info| info.clone().seen(now).is_none()) {
            return Err(StoreError::NotFound(format!("worker {worker}")));
        }
        // Who was asked to stop is not asked for less.
        let asked = shelf.wishes.entry(worker.to_string()).or_insert(wish);
        *asked = wish.max(*asked);
        shelf.listeners.tell(Channel::Control, Event::Asked { worker: worker.clone(), wish });
        Ok(())
    }

    async fn retire(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let mut shelf = self.shelf();
        shelf.workers.remove(worker.as_str());
        shelf.wishes.remove(worker.as_str());
        Ok(())
    }

    async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        let (mut guard, now) = (self.shelf(), self.0.clock.now());
        let shelf = &mut *guard;
        let all = std::mem::take(&mut shelf.workers).into_iter();
        shelf.workers = all.filter_map(|(id, info)| Some((id, info.seen(now)?))).collect();
        shelf.wishes.retain(|id, _| shelf.workers.contains_key(id));
        Ok(shelf.workers.values().cloned().collect())
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

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    /// What is in memory is as durable as it gets.
    fn durable(&self, _: Durability) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
