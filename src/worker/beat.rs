//! Says that this worker is there, for those who look.

use super::{Shared, Shutdown, control};
use crate::{
    model::Timestamp,
    store::{BEAT, Store, WorkerInfo, WorkerState},
};
use std::time::Duration;

/// At its end a worker has so long to leave the list.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);

/// Beats until it is dropped. Nobody's work depends on it.
pub(super) async fn beat(shared: &Shared, store: &dyn Store) {
    let started_at = Timestamp::now();
    let mut ticks = tokio::time::interval(BEAT);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut told = WorkerState::Running;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            // Whoever asked it to be quiet, or to stop, wants to see that it is.
            () = changed(&shared.shutdown, told) => {}
        }
        let info = info(shared, started_at);
        told = info.state;
        match store.beat(&info).await {
            Ok(wish) => {
                if let Some(wish) = wish {
                    control::grant(&shared.shutdown, wish);
                }
            }
            Err(error) => tracing::debug!(%error, "heartbeat failed; trying again"),
        }
        let queues: Vec<_> =
            shared.queues.borrow().iter().map(|(queue, _)| queue.clone()).collect();
        if let Err(error) = store.register(&queues).await {
            tracing::debug!(%error, "queues not put on their list; trying again");
        }
    }
}

/// Until the state is another than that.
async fn changed(shutdown: &Shutdown, told: WorkerState) {
    match told {
        WorkerState::Running => shutdown.quieted().await,
        WorkerState::Quiet => shutdown.draining().await,
        WorkerState::Stopping => std::future::pending().await,
    }
}

fn info(shared: &Shared, started_at: Timestamp) -> WorkerInfo {
    WorkerInfo {
        id: shared.id.to_string(),
        queues: shared.queues.borrow().iter().map(|(queue, _)| queue.to_string()).collect(),
        host: gethostname::gethostname().to_string_lossy().into_owned(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        state: match (shared.shutdown.is_draining(), shared.shutdown.is_quiet()) {
            (true, _) => WorkerState::Stopping,
            (false, true) => WorkerState::Quiet,
            (false, false) => WorkerState::Running,
        },
        concurrency: shared.concurrency,
        busy: shared.running.count(),
        jobs: shared.running.told(),
        started_at,
        seen_at: started_at,
        gone: false,
    }
}

/// Takes this worker off the list, if that is possible at once.
pub(super) async fn leave(shared: &Shared) {
    let left = tokio::time::timeout(LEAVE_WITHIN, shared.store().retire(&shared.id)).await;
    if !matches!(left, Ok(Ok(()))) {
        tracing::debug!("could not leave the list of workers; it is told to be gone in a minute");
    }
}
