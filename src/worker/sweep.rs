//! The sweep: does what time has made due, also while the worker is full.

use super::{
    Shared,
    calls::{Calls, Heard, Told},
    meters,
};
use crate::{
    model::{QueueName, StoreError},
    store::{Pace, Swept},
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// Sweeps come at most so far apart: a dead worker's lease, or a wake token lost with its taker,
/// costs no more than this.
const PAUSE: Duration = Duration::from_millis(1_500);
/// And no closer than this, however many jobs are due one after another.
const LEAST_PAUSE: Duration = Duration::from_millis(5);
/// After a wake token, which may mean an earlier due time than the last sweep saw.
const SOON: Duration = Duration::from_millis(50);
/// A sweep that took so long has met an outage of the store.
const OUTAGE: Duration = Duration::from_secs(1);

/// Sweeps all queues of the worker until it is dropped.
pub(super) async fn sweep_queues(shared: Arc<Shared>) {
    let mut sweeps =
        Sweeps { shared, calls: Calls::new(), troubles: HashMap::new(), told: Told::default() };
    let mut next = Instant::now();
    loop {
        tokio::select! {
            () = sleep_until(next) => next = sweeps.round().await,
            () = sweeps.shared.sweep_soon.notified() => {
                sleep_until(next.min(Instant::now() + SOON)).await;
                next = sweeps.round().await;
            }
            heard = sweeps.calls.heard() => next = next.min(sweeps.next_after(heard)),
        }
    }
}

struct Sweeps {
    shared: Arc<Shared>,
    /// What each sweep found, and how long it took.
    calls: Calls<(Swept, Duration), StoreError>,
    troubles: HashMap<QueueName, Trouble>,
    told: Told,
}

/// A queue that could not be swept, or not for a while. An outage is not a crash: after one, whoever
/// lives extends its leases before this worker takes those that have run out.
struct Trouble {
    /// The store did not answer.
    away: bool,
    spare_leases_until: Instant,
}

impl Sweeps {
    /// Sweeps all once. Answers when to sweep again.
    async fn round(&mut self) -> Instant {
        let begun = Instant::now();
        let queues = self.shared.queues.borrow().clone();
        for (queue, _) in queues.iter() {
            if self.calls.is_free(queue) {
                let call = sweep(self.shared.clone(), queue.clone(), self.pace(queue));
                self.calls.make(queue, call);
            }
        }
        let mut next = None;
        while let Some(heard) = self.calls.heard_in_round(begun).await {
            let at = self.next_after(heard);
            next = Some(next.map_or(at, |next: Instant| next.min(at)));
        }
        let now = Instant::now();
        next.unwrap_or(now + PAUSE).max(now + LEAST_PAUSE)
    }

    fn pace(&self, queue: &QueueName) -> Pace {
        match self.troubles.get(queue) {
            // What is repeated until the store is back must not be what reclaims.
            Some(trouble) if trouble.away || Instant::now() < trouble.spare_leases_until => {
                Pace::Promote
            }
            _ => Pace::Shared,
        }
    }

    /// Tells what a sweep found. Answers when to sweep again for its sake.
    fn next_after(&mut self, heard: Heard<(Swept, Duration), StoreError>) -> Instant {
        let now = Instant::now();
        let Heard::Answer(queue, answer) = heard else { return now + PAUSE };
        match answer {
            Ok((swept, took)) => {
                let next = now + until_due(&swept);
                if swept.claimable {
                    self.shared.look.notify_one();
                }
                tell(&self.shared, &queue, swept);
                self.told.forget(&queue);
                if took > OUTAGE {
                    self.spare(queue, false);
                } else if let Some(trouble) = self.troubles.get_mut(&queue) {
                    trouble.away = false;
                    if trouble.spare_leases_until <= now {
                        self.troubles.remove(&queue);
                    }
                }
                next
            }
            Err(error @ StoreError::Unavailable(_)) => {
                if !self.troubles.values().any(|trouble| trouble.away) {
                    tracing::warn!(%queue, %error, "the store is away; it is swept again when it is back");
                }
                self.spare(queue, true);
                now + PAUSE
            }
            // It is this queue's own, and no reason to spare leases.
            Err(error) => {
                if self.told.is_due(&queue) {
                    tracing::warn!(%queue, %error, "sweep failed; trying again");
                }
                now + PAUSE
            }
        }
    }

    fn spare(&mut self, queue: QueueName, away: bool) {
        let spare_leases_until = Instant::now() + self.shared.lease / 3;
        self.troubles.insert(queue, Trouble { away, spare_leases_until });
        self.shared.extend_now.notify_one();
    }
}

async fn sweep(
    shared: Arc<Shared>,
    queue: QueueName,
    pace: Pace,
) -> Result<(Swept, Duration), StoreError> {
    let sent = Instant::now();
    let swept = shared.store().sweep(&queue, pace).await?;
    Ok((swept, sent.elapsed()))
}

pub(super) fn tell(shared: &Shared, queue: &QueueName, swept: Swept) {
    if swept.reclaimed > 0 {
        tracing::info!(%queue, jobs = swept.reclaimed, "reclaimed from vanished workers");
    }
    if swept.quarantined > 0 {
        tracing::error!(%queue, jobs = swept.quarantined,
            "quarantined: they killed their workers; an operator has to release them");
    }
    meters::swept(queue, "promoted", swept.promoted);
    meters::swept(queue, "reclaimed", swept.reclaimed);
    meters::swept(queue, "expired", swept.expired);
    meters::swept(queue, "quarantined", swept.quarantined);
    meters::swept(queue, "evicted", swept.evicted);
    shared.hooks.tell_all(queue, swept.ended);
}

/// Until the next job is due, and the millisecond by which the two clocks may be out of step.
fn until_due(swept: &Swept) -> Duration {
    swept.next_due.map_or(PAUSE, |due| due + Duration::from_millis(1))
}
