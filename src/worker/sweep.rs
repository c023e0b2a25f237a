//! The sweep: does what time has made due, also while the worker is full.

use super::{Shared, meters};
use crate::{
    model::QueueName,
    store::{Pace, Swept},
};
use futures_util::future::join_all;
use std::{sync::Arc, time::Duration};
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
    // An outage is not a crash: after one, whoever lives extends its leases before this worker takes
    // those that have run out.
    let mut spare_leases_until = Instant::now();
    loop {
        let started = Instant::now();
        let pace = if started < spare_leases_until { Pace::Promote } else { Pace::Shared };
        let (pause, failed) = sweep(&shared, pace).await;
        if failed || started.elapsed() > OUTAGE {
            spare_leases_until = Instant::now() + shared.lease / 3;
            shared.extend_now.notify_one();
        }
        let next = Instant::now() + pause;
        tokio::select! {
            () = sleep_until(next) => {}
            () = shared.sweep_soon.notified() => {
                sleep_until(next.min(Instant::now() + SOON)).await;
            }
        }
    }
}

/// Sweeps once. Answers how long the next sweep may wait, and whether one failed.
async fn sweep(shared: &Shared, pace: Pace) -> (Duration, bool) {
    let queues = shared.queues.borrow().clone();
    let store = shared.store();
    let sweeps = queues.iter().map(|(queue, _)| store.sweep(queue, pace));
    let (mut pause, mut failed) = (PAUSE, false);
    for ((queue, _), swept) in queues.iter().zip(join_all(sweeps).await) {
        match swept {
            Ok(swept) => {
                pause = pause.min(until_due(&swept));
                if swept.claimable {
                    shared.look.notify_one();
                }
                tell(shared, queue, swept);
            }
            Err(error) => {
                failed = true;
                tracing::warn!(%queue, %error, "sweep failed; trying again");
            }
        }
    }
    (pause.max(LEAST_PAUSE), failed)
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
