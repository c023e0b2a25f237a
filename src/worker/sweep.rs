//! The sweep: does what time has made due, also while the worker is full.

use super::Shared;
use crate::store::{Pace, Swept};
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

/// Sweeps all queues of the worker until it is dropped.
pub(super) async fn sweep_queues(shared: Arc<Shared>) {
    loop {
        let next = Instant::now() + sweep(&shared).await;
        tokio::select! {
            () = sleep_until(next) => {}
            () = shared.sweep_soon.notified() => {
                sleep_until(next.min(Instant::now() + SOON)).await;
            }
        }
    }
}

/// Sweeps once. Answers how long the next sweep may wait.
async fn sweep(shared: &Shared) -> Duration {
    let sweeps = shared.queues.iter().map(|(queue, _)| shared.store.sweep(queue, Pace::Shared));
    let mut pause = PAUSE;
    for ((queue, _), swept) in shared.queues.iter().zip(join_all(sweeps).await) {
        match swept {
            Ok(swept) => {
                pause = pause.min(until_due(&swept));
                if swept.reclaimed > 0 {
                    tracing::info!(%queue, jobs = swept.reclaimed, "reclaimed from vanished workers");
                }
                if swept.claimable {
                    shared.look.notify_one();
                }
            }
            Err(error) => tracing::warn!(%queue, %error, "sweep failed; trying again"),
        }
    }
    pause.max(LEAST_PAUSE)
}

/// Until the next job is due, and the millisecond by which the two clocks may be out of step.
fn until_due(swept: &Swept) -> Duration {
    swept.next_due.map_or(PAUSE, |due| due + Duration::from_millis(1))
}
