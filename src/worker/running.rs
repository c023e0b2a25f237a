//! The jobs in this worker's hands, from claim to settled, and what it knows of their leases.

use super::{CancelReason, Context};
use crate::{
    model::{Fence, JobId, QueueName, Timestamp},
    store::{Held, RunningJob},
};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// A heartbeat tells of so many jobs.
const MAX_TOLD: usize = 100;

/// All jobs of this worker that are not settled yet.
#[derive(Debug, Default)]
pub(super) struct Running {
    jobs: Mutex<HashMap<(QueueName, JobId), Lease>>,
    /// All were told to stop, and so is one that begins just now.
    all_told: OnceLock<CancelReason>,
}

/// One job's lease as this worker sees it.
#[derive(Debug)]
struct Lease {
    context: Context,
    started_at: Timestamp,
    /// Not extended by then, the handler is told to stop: a tenth before Redis would let go.
    deadline: Instant,
    /// The lease may be another's: the handler was told to stop.
    lost: bool,
}

/// How long a lease may be trusted, counted from before the call that made or extended it.
pub(super) fn trusted(sent: Instant, lease: Duration) -> Instant {
    sent + lease.mul_f64(0.9)
}

impl Running {
    /// A job was claimed; its lease may be trusted until `deadline`.
    pub(super) fn add(&self, context: &Context, deadline: Instant) {
        let started_at = Timestamp::now();
        let lease = Lease { context: context.clone(), started_at, deadline, lost: false };
        // Reclaimed, and claimed anew by this same worker: its first run is not extended any more.
        if let Some(mut first) = self.lock().insert(key(context), lease) {
            first.lose(CancelReason::LeaseLost);
        }
        if let Some(reason) = self.all_told.get() {
            context.cancellation().cancel(*reason);
        }
    }

    /// A job is settled, or its settlement was refused: no longer extended.
    pub(super) fn remove(&self, context: &Context) {
        let mut jobs = self.lock();
        // The same job may have been claimed anew by this worker meanwhile, under another fence.
        if jobs.get(&key(context)).is_some_and(|lease| lease.has(context.fence())) {
            jobs.remove(&key(context));
        }
    }

    /// Whether the lease may be another's.
    pub(super) fn is_lost(&self, context: &Context) -> bool {
        let jobs = self.lock();
        let lease = jobs.get(&key(context));
        lease.is_none_or(|lease| lease.lost || !lease.has(context.fence()))
    }

    /// Jobs in hand.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The jobs in hand, oldest first, at most a hundred.
    pub(super) fn told(&self) -> Vec<RunningJob> {
        let jobs = self.lock();
        let mut oldest: Vec<_> = jobs.values().collect();
        oldest.sort_by_key(|lease| lease.started_at);
        oldest.into_iter().take(MAX_TOLD).map(Lease::told).collect()
    }

    /// Tells every handler to stop.
    pub(super) fn cancel_all(&self, reason: CancelReason) {
        // Before the lock: who adds a job after it sees this.
        let _ = self.all_told.set(reason);
        self.lock().values().for_each(|lease| lease.context.cancellation().cancel(reason));
    }

    /// What is to be extended.
    pub(super) fn by_queue(&self) -> HashMap<QueueName, Vec<Held>> {
        let mut queues: HashMap<_, Vec<_>> = HashMap::new();
        for ((queue, id), lease) in self.lock().iter().filter(|(_, lease)| !lease.lost) {
            let held = Held { id: id.clone(), fence: lease.context.fence() };
            queues.entry(queue.clone()).or_default().push(held);
        }
        queues
    }

    pub(super) fn extended(&self, queue: &QueueName, held: &Held, until: Instant) {
        let extend = |lease: &mut Lease| lease.deadline = lease.deadline.max(until);
        self.change(queue, &held.id, |fence| fence == held.fence, extend);
    }

    /// Gives up a job whose extension was refused. Answers whether it was in hand.
    pub(super) fn lose(&self, queue: &QueueName, held: &Held) -> bool {
        let lose = |lease: &mut Lease| lease.lose(CancelReason::LeaseLost);
        self.change(queue, &held.id, |fence| fence == held.fence, lose)
    }

    /// An operator ended a job that this fence, or an earlier one, held.
    pub(super) fn superseded(&self, queue: &QueueName, id: &JobId, fence: Fence) {
        let lose = |lease: &mut Lease| lease.lose(CancelReason::Operator);
        self.change(queue, id, |ours| ours <= fence, lose);
    }

    /// Gives up what was not extended in time. Answers how many those were.
    pub(super) fn lose_overdue(&self) -> usize {
        let now = Instant::now();
        let mut jobs = self.lock();
        let overdue = jobs.values_mut().filter(|lease| !lease.lost && lease.deadline <= now);
        overdue.map(|lease| lease.lose(CancelReason::LeaseLost)).count()
    }

    fn change(
        &self,
        queue: &QueueName,
        id: &JobId,
        is_meant: impl Fn(Fence) -> bool,
        change: impl FnOnce(&mut Lease),
    ) -> bool {
        let mut jobs = self.lock();
        let lease = jobs.get_mut(&(queue.clone(), id.clone()));
        lease.filter(|lease| is_meant(lease.context.fence())).map(change).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(QueueName, JobId), Lease>> {
        // Each change of the map is one step: a panic cannot leave it half-done.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(context: &Context) -> (QueueName, JobId) {
    (context.queue().clone(), context.id().clone())
}

impl Lease {
    fn has(&self, fence: Fence) -> bool {
        self.context.fence() == fence
    }

    fn lose(&mut self, reason: CancelReason) {
        self.lost = true;
        self.context.cancellation().cancel(reason);
    }

    fn told(&self) -> RunningJob {
        RunningJob {
            queue: self.context.queue().to_string(),
            id: self.context.id().to_string(),
            kind: self.context.kind().to_string(),
            attempt: self.context.attempt(),
            started_at: self.started_at,
        }
    }
}
