//! The jobs in this worker's hands, from claim to settled, and the leases on them.

use super::Shared;
use crate::{
    model::{JobId, QueueName, StoreError},
    store::Held,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// All jobs of this worker that are not settled yet.
#[derive(Debug, Default)]
pub(super) struct Running(Mutex<HashMap<(QueueName, JobId), Lease>>);

/// One job's lease as this worker sees it.
#[derive(Debug, Clone)]
struct Lease {
    held: Held,
    cancelled: CancellationToken,
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
    /// A job was claimed by a call sent at `sent`. Answers the token that tells its handler to stop.
    pub(super) fn add(
        &self,
        queue: &QueueName,
        held: Held,
        deadline: Instant,
    ) -> CancellationToken {
        let cancelled = CancellationToken::new();
        let key = (queue.clone(), held.id.clone());
        let lease = Lease { held, cancelled: cancelled.clone(), deadline, lost: false };
        // Reclaimed, and claimed anew by this same worker: its first run is not extended any more.
        if let Some(mut first) = self.lock().insert(key, lease) {
            first.lose();
        }
        cancelled
    }

    /// A job is settled, or its settlement was refused: no longer extended.
    pub(super) fn remove(&self, queue: &QueueName, held: &Held) {
        let mut jobs = self.lock();
        let key = (queue.clone(), held.id.clone());
        // The same job may have been claimed anew by this worker meanwhile, under another fence.
        if jobs.get(&key).is_some_and(|lease| lease.held.fence == held.fence) {
            jobs.remove(&key);
        }
    }

    /// Whether the lease may be another's.
    pub(super) fn is_lost(&self, queue: &QueueName, held: &Held) -> bool {
        let jobs = self.lock();
        let lease = jobs.get(&(queue.clone(), held.id.clone()));
        lease.is_none_or(|lease| lease.lost || lease.held.fence != held.fence)
    }

    /// Jobs in hand.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Tells every handler to stop.
    pub(super) fn cancel_all(&self) {
        self.lock().values().for_each(|lease| lease.cancelled.cancel());
    }

    fn by_queue(&self) -> HashMap<QueueName, Vec<Held>> {
        let mut queues: HashMap<_, Vec<_>> = HashMap::new();
        for ((queue, _), lease) in self.lock().iter().filter(|(_, lease)| !lease.lost) {
            queues.entry(queue.clone()).or_default().push(lease.held.clone());
        }
        queues
    }

    fn extended(&self, queue: &QueueName, held: &Held, until: Instant) {
        self.change(queue, held, |lease| lease.deadline = lease.deadline.max(until));
    }

    fn lose(&self, queue: &QueueName, held: &Held) {
        self.change(queue, held, Lease::lose);
    }

    /// Gives up what was not extended in time. Answers how many those were.
    fn lose_overdue(&self) -> usize {
        let now = Instant::now();
        let mut jobs = self.lock();
        let overdue = jobs.values_mut().filter(|lease| !lease.lost && lease.deadline <= now);
        overdue.map(Lease::lose).count()
    }

    fn change(&self, queue: &QueueName, held: &Held, change: impl FnOnce(&mut Lease)) {
        let mut jobs = self.lock();
        let lease = jobs.get_mut(&(queue.clone(), held.id.clone()));
        lease.filter(|lease| lease.held.fence == held.fence).map(change);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(QueueName, JobId), Lease>> {
        // Each change of the map is one step: a panic cannot leave it half-done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    fn lose(&mut self) {
        self.lost = true;
        self.cancelled.cancel();
    }
}

/// Extends all leases at a third of their time, also while draining.
pub(super) async fn extend_leases(shared: Arc<Shared>) {
    let mut tick = tokio::time::interval(shared.lease / 3);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let queues = shared.running.by_queue();
        let extend = queues.iter().flat_map(|(queue, held)| {
            held.chunks(crate::model::MAX_BATCH).map(|held| extend(&shared, queue, held))
        });
        futures_util::future::join_all(extend).await;
    }
}

async fn extend(shared: &Shared, queue: &QueueName, held: &[Held]) {
    let until = trusted(Instant::now(), shared.lease);
    match shared.store.extend(queue, held, shared.lease).await {
        Ok(outcomes) => {
            for (held, outcome) in held.iter().zip(outcomes) {
                match outcome {
                    Ok(()) => shared.running.extended(queue, held, until),
                    Err(StoreError::LeaseRejected { job_id }) => {
                        tracing::warn!(%queue, job_id, "lease lost; its handler is told to stop");
                        shared.running.lose(queue, held);
                    }
                    Err(error) => tracing::error!(%queue, %error, "lease not extended"),
                }
            }
        }
        Err(error) => {
            tracing::warn!(%queue, jobs = held.len(), %error, "leases not extended; trying again");
        }
    }
}

/// Watches the local deadlines: whoever cannot extend must not go on as if it could.
pub(super) async fn watch_deadlines(shared: Arc<Shared>) {
    let often = (shared.lease / 20).clamp(Duration::from_millis(5), Duration::from_secs(1));
    loop {
        tokio::time::sleep(often).await;
        let lost = shared.running.lose_overdue();
        if lost > 0 {
            tracing::warn!(
                jobs = lost,
                "leases not extended in time; their handlers are told to stop"
            );
        }
    }
}
