//! The keeper: a thread and runtime of its own, with connections of its own, that holds on to what the
//! worker has in hand. Handlers that keep every thread of the program's runtime busy cannot starve it.

use super::{Shared, beat, control, running::trusted};
use crate::{
    model::{MAX_BATCH, QueueName, StoreError},
    store::{Held, Store},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use std::{sync::Arc, time::Duration};
use tokio::{runtime::Handle, time::Instant};
use tokio_util::sync::CancellationToken;

/// So often the program's runtime is knocked at.
const KNOCK: Duration = Duration::from_millis(200);

/// Keeps until it is told to end, or dropped.
pub(super) struct Keeper {
    over: CancellationToken,
    ended: CancellationToken,
}

impl Keeper {
    pub(super) fn start(shared: &Arc<Shared>) -> Self {
        let (over, ended) = (CancellationToken::new(), CancellationToken::new());
        let program = Handle::current();
        let until_over = {
            let (shared, over, ended) = (shared.clone(), over.clone(), ended.clone());
            let program = program.clone();
            move || async move {
                let _ended = ended.drop_guard();
                let _needed = Needed(shared.clone(), over.clone());
                over.run_until_cancelled(keep(shared, program)).await;
            }
        };
        let without = {
            let until_over = until_over.clone();
            move |error: std::io::Error| {
                tracing::error!(%error, "no thread for the keeper; busy handlers may starve it");
                program.spawn(until_over());
            }
        };
        let thread = std::thread::Builder::new().name("sprag-keeper".into()).spawn({
            let without = without.clone();
            // Made there: a runtime must not be dropped here, should the thread not start.
            move || match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime.block_on(until_over()),
                Err(error) => without(error),
            }
        });
        if let Err(error) = thread {
            without(error);
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

/// Without its keeper a worker would hold jobs that it does not extend: it ends with it.
struct Needed(Arc<Shared>, CancellationToken);

impl Drop for Needed {
    fn drop(&mut self) {
        let Self(shared, over) = self;
        if !over.is_cancelled() {
            tracing::error!("the keeper ended by itself: the worker is aborted");
            shared.shutdown.abort();
        }
    }
}

async fn keep(shared: Arc<Shared>, program: Handle) {
    // Made here: connections live on the runtime where they are first used.
    let store = shared.store().apart();
    tokio::join!(
        extend_leases(&shared, &*store),
        watch_deadlines(&shared),
        knock(&shared, program),
        beat::beat(&shared, &*store),
        control::obey(&shared, &*store),
    );
}

/// Extends all leases at a third of their time, also while draining. No call waits for another: one
/// that is being repeated holds up neither the jobs of other queues nor those claimed since. They do
/// not pile up: after three thirds its jobs are lost, and not extended any more.
async fn extend_leases(shared: &Shared, store: &dyn Store) {
    let mut tick = tokio::time::interval(shared.lease / 3);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut calls = FuturesUnordered::new();
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = shared.extend_now.notified() => {}
            Some(()) = calls.next() => continue,
        }
        for (queue, mut held) in shared.running.by_queue() {
            while !held.is_empty() {
                let rest = held.split_off(held.len().min(MAX_BATCH));
                calls.push(extend(
                    shared,
                    store,
                    queue.clone(),
                    std::mem::replace(&mut held, rest),
                ));
            }
        }
    }
}

async fn extend(shared: &Shared, store: &dyn Store, queue: QueueName, held: Vec<Held>) {
    let until = trusted(Instant::now(), shared.lease);
    match store.extend(&queue, &held, shared.lease).await {
        Ok(outcomes) => {
            for (held, outcome) in held.iter().zip(outcomes) {
                match outcome {
                    Ok(()) => shared.running.extended(&queue, held, until),
                    Err(StoreError::LeaseRejected { job_id }) => {
                        // It may have been settled meanwhile.
                        if shared.running.lose(&queue, held) {
                            tracing::warn!(%queue, job_id, "lease lost; its handler is told to stop");
                        }
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

/// Knocks at the program's runtime. A handler that spins may occupy just the thread that was about to
/// wait for I/O and timers; the others sleep, and nobody would see that the handler's time is over.
/// A task from outside wakes one of them.
async fn knock(shared: &Shared, program: Handle) {
    let mut answered = program.spawn(async {});
    loop {
        tokio::time::sleep(KNOCK).await;
        if answered.is_finished() && shared.running.count() > 0 {
            answered = program.spawn(async {});
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
