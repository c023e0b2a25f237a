//! The keeper: a thread and runtime of its own, with connections of its own, that holds on to what the
//! worker has in hand. Handlers that keep every thread of the program's runtime busy cannot starve it.

use super::{Shared, beat, control, running::trusted};
use crate::{
    model::{MAX_BATCH, QueueName, StoreError},
    store::{Held, Store},
};
use futures_util::future::join_all;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Keeps until it is told to end, or dropped.
pub(super) struct Keeper {
    over: CancellationToken,
    ended: CancellationToken,
}

impl Keeper {
    pub(super) fn start(shared: &Arc<Shared>) -> Self {
        let (over, ended) = (CancellationToken::new(), CancellationToken::new());
        let until_over = {
            let (shared, over, ended) = (shared.clone(), over.clone(), ended.clone());
            move || async move {
                let _ended = ended.drop_guard();
                over.run_until_cancelled(keep(shared)).await;
            }
        };
        let thread = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let thread = thread.and_then(|runtime| {
            let until_over = until_over.clone();
            let thread = std::thread::Builder::new().name("sprag-keeper".into());
            thread.spawn(move || runtime.block_on(until_over()))
        });
        if let Err(error) = thread {
            tracing::error!(%error, "no thread for the keeper; busy handlers may starve it");
            tokio::spawn(until_over());
        }
        Self { over, ended }
    }

    /// Ends it, with what it has in flight.
    pub(super) async fn end(self) {
        self.over.cancel();
        self.ended.cancelled().await;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

async fn keep(shared: Arc<Shared>) {
    // Made here: connections live on the runtime where they are first used.
    let store = shared.store().apart();
    tokio::join!(
        extend_leases(&shared, &*store),
        watch_deadlines(&shared),
        beat::beat(&shared, &*store),
        control::obey(&shared, &*store),
    );
}

/// Extends all leases at a third of their time, also while draining.
async fn extend_leases(shared: &Shared, store: &dyn Store) {
    let mut tick = tokio::time::interval(shared.lease / 3);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! { _ = tick.tick() => {} () = shared.extend_now.notified() => {} }
        let queues = shared.running.by_queue();
        let calls = queues.iter().flat_map(|(queue, held)| {
            held.chunks(MAX_BATCH).map(|held| extend(shared, store, queue, held))
        });
        join_all(calls).await;
    }
}

async fn extend(shared: &Shared, store: &dyn Store, queue: &QueueName, held: &[Held]) {
    let until = trusted(Instant::now(), shared.lease);
    match store.extend(queue, held, shared.lease).await {
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
async fn watch_deadlines(shared: &Shared) {
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
