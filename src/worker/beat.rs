//! Says that this worker is there, for those who look.

use super::{LAST_WORDS, Shared};
use crate::{
    model::Timestamp,
    store::{BEAT, WorkerInfo, WorkerState},
};
use std::sync::Arc;

/// Beats until it is dropped. Nobody's work depends on it.
pub(super) async fn beat(shared: Arc<Shared>) {
    let started_at = Timestamp::now();
    let mut ticks = tokio::time::interval(BEAT);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let info = WorkerInfo {
            id: shared.id.to_string(),
            queues: shared.queues.iter().map(|(queue, _)| queue.to_string()).collect(),
            host: gethostname::gethostname().to_string_lossy().into_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            concurrency: shared.concurrency,
            busy: shared.running.count(),
            state: WorkerState::Running,
            jobs: Vec::new(),
            started_at,
            seen_at: started_at,
            gone: false,
        };
        if let Err(error) = shared.store.beat(&info).await {
            tracing::debug!(%error, "heartbeat failed; trying again");
        }
    }
}

/// Takes this worker off the list, if that is possible at once.
pub(super) async fn leave(shared: &Shared) {
    let left = tokio::time::timeout(LAST_WORDS, shared.store.retire(&shared.id)).await;
    if !matches!(left, Ok(Ok(()))) {
        tracing::debug!("could not leave the list of workers; it is told to be gone in a minute");
    }
}
