//! The sweep: does what time has made due, also while the worker is full.

use super::{Shared, meters};
use crate::{
    model::{QueueName, StoreError},
    store::{Pace, Swept},
};
use futures_util::future::join_all;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};

/// Sweeps come at most so far apart: a dead worker's lease, or a wake token lost with its taker,
/// costs no more than this.
const PAUSE: Duration = Duration::from_millis(1_500);
/// And no closer than this, however many jobs are due one after another.
const LEAST_PAUSE: Duration = Duration::from_millis(5);
/// After a wake token, which may mean an earlier due time than the last sweep saw.
const SOON: Duration = Duration::from_millis(50);
/// A queue's sweep that fails is told of at most so often.
const LOG_PAUSE: Duration = Duration::from_secs(10);
/// A sweep that took so long has met an outage of the store.
const OUTAGE: Duration = Duration::from_secs(1);

/// Sweeps all queues of the worker until it is dropped.
pub(super) async fn sweep_queues(shared: Arc<Shared>) {
    // An outage is not a crash: after one, whoever lives extends its leases before this worker takes
    // those that have run out.
    let (mut is_away, mut spare_leases_until) = (false, Instant::now());
    let mut told: Told = HashMap::new();
    loop {
        let started = Instant::now();
        // What is repeated until the store is back must not be what reclaims.
        let is_over = !is_away && started >= spare_leases_until;
        let (pause, away) =
            sweep(&shared, if is_over { Pace::Shared } else { Pace::Promote }, &mut told).await;
        if let Some(error) = away.as_ref().filter(|_| !is_away) {
            tracing::warn!(%error, "the store is away; it is swept again when it is back");
        }
        is_away = away.is_some();
        if is_away || started.elapsed() > OUTAGE {
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

/// When it was last told that a queue's sweep failed.
type Told = HashMap<QueueName, Instant>;

/// Sweeps once. Answers how long the next sweep may wait, and whether the store was away.
async fn sweep(shared: &Shared, pace: Pace, told: &mut Told) -> (Duration, Option<StoreError>) {
    let queues = shared.queues.borrow().clone();
    let store = shared.store();
    let sweeps = queues.iter().map(|(queue, _)| store.sweep(queue, pace));
    let (mut pause, mut away) = (PAUSE, None);
    for ((queue, _), swept) in queues.iter().zip(join_all(sweeps).await) {
        match swept {
            Ok(swept) => {
                told.remove(queue);
                pause = pause.min(until_due(&swept));
                if swept.claimable {
                    shared.look.notify_one();
                }
                tell(shared, queue, swept);
            }
            Err(error @ StoreError::Unavailable(_)) => away = Some(error),
            // It is this queue's own, and no reason to spare others.
            Err(error) => {
                if told.get(queue).is_none_or(|at| at.elapsed() >= LOG_PAUSE) {
                    told.insert(queue.clone(), Instant::now());
                    tracing::warn!(%queue, %error, "sweep failed; trying again");
                }
            }
        }
    }
    (pause.max(LEAST_PAUSE), away)
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
