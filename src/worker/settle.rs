//! Settlements: what gathers while the previous calls are in flight leaves together.

use super::{Report, Shared};
use crate::{
    model::{MAX_BATCH, QueueName, State, StoreError},
    store::{Archive, Complete, Held, Outcomes, Retry, Snooze},
};
use std::{collections::HashMap, mem::discriminant, sync::Arc};
use tokio::sync::mpsc;

/// A run that is over, on its way to the store.
pub(super) struct Unsettled {
    pub(super) queue: QueueName,
    pub(super) held: Held,
    pub(super) settlement: Settlement,
}

/// What a run came to.
#[derive(Clone)]
pub(super) enum Settlement {
    Complete(Complete),
    Retry(Retry),
    Archive(Archive),
    Snooze(Snooze),
    Requeue(Held),
}

/// Settles until no run is left and all is settled.
pub(super) async fn settle_all(shared: Arc<Shared>, mut unsettled: mpsc::Receiver<Unsettled>) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            count = unsettled.recv_many(&mut batch, 4 * MAX_BATCH) => if count == 0 { return },
            // All that runs sent has been received before this branch is looked at.
            () = shared.runs_over.cancelled() => return,
        }
        while !batch.is_empty() {
            batch = settle(&shared, std::mem::take(&mut batch)).await;
        }
    }
}

/// Settles a batch: a call per queue and verb, all at once. Answers what is to be tried again.
async fn settle(shared: &Shared, batch: Vec<Unsettled>) -> Vec<Unsettled> {
    let mut calls: HashMap<_, Vec<Unsettled>> = HashMap::new();
    for job in batch {
        calls.entry((job.queue.clone(), discriminant(&job.settlement))).or_default().push(job);
    }
    let mut slices = Vec::new();
    for mut jobs in calls.into_values() {
        while jobs.len() > MAX_BATCH {
            slices.push(jobs.split_off(jobs.len() - MAX_BATCH));
        }
        slices.push(jobs);
    }
    let again = slices.into_iter().map(|jobs| settle_slice(shared, jobs));
    futures_util::future::join_all(again).await.into_iter().flatten().collect()
}

/// Settles jobs of one queue by one verb.
async fn settle_slice(shared: &Shared, jobs: Vec<Unsettled>) -> Vec<Unsettled> {
    let queue = &jobs[0].queue.clone();
    match call(shared, queue, &jobs).await {
        Ok(outcomes) => {
            for (job, outcome) in jobs.iter().zip(outcomes) {
                shared.running.remove(queue, &job.held);
                match outcome {
                    Ok(()) => {}
                    Err(StoreError::LeaseRejected { job_id }) => {
                        tracing::warn!(%queue, job_id, "settlement refused: the lease was lost");
                        shared.report().lost += 1;
                    }
                    Err(error) => {
                        tracing::error!(%queue, job_id = %job.held.id, %error,
                            "settlement refused; the job comes back when its lease ends");
                        shared.report().lost += 1;
                    }
                }
            }
            Vec::new()
        }
        Err(error) => {
            // Repeated for the store's whole budget. While a lease may be ours it is tried again.
            let (lost, kept): (Vec<_>, Vec<_>) =
                jobs.into_iter().partition(|job| shared.running.is_lost(&job.queue, &job.held));
            tracing::error!(%error, again = kept.len(), given_up = lost.len(), "jobs not settled");
            for job in &lost {
                shared.running.remove(&job.queue, &job.held);
            }
            shared.report().lost += lost.len() as u64;
            if matches!(error, StoreError::Unavailable(_)) {
                return kept;
            }
            for job in &kept {
                shared.running.remove(&job.queue, &job.held);
            }
            shared.report().lost += kept.len() as u64;
            Vec::new()
        }
    }
}

macro_rules! of_kind {
    ($jobs:expr, $kind:ident) => {
        $jobs
            .iter()
            .filter_map(|job| match &job.settlement {
                Settlement::$kind(item) => Some(item.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
}

/// One call to the store; counts what it settled.
async fn call(
    shared: &Shared,
    queue: &QueueName,
    jobs: &[Unsettled],
) -> Result<Outcomes<()>, StoreError> {
    let store = &shared.store;
    let count = |counter: fn(&mut Report) -> &mut u64, outcomes: Outcomes<()>| {
        *counter(&mut shared.report()) += outcomes.iter().filter(|o| o.is_ok()).count() as u64;
        outcomes
    };
    match &jobs[0].settlement {
        Settlement::Complete(_) => {
            let done = store.complete(queue, &of_kind!(jobs, Complete)).await?;
            Ok(count(|report| &mut report.completed, done))
        }
        Settlement::Archive(_) => {
            let done = store.archive(queue, &of_kind!(jobs, Archive)).await?;
            Ok(count(|report| &mut report.archived, done))
        }
        Settlement::Snooze(_) => {
            let done = store.snooze(queue, &of_kind!(jobs, Snooze)).await?;
            Ok(count(|report| &mut report.snoozed, done))
        }
        Settlement::Requeue(_) => {
            let done = store.requeue(queue, &of_kind!(jobs, Requeue)).await?;
            Ok(count(|report| &mut report.requeued, done))
        }
        Settlement::Retry(_) => {
            let states = store.retry(queue, &of_kind!(jobs, Retry)).await?;
            let archived =
                states.iter().filter(|s| matches!(s, Ok(State::Archived))).count() as u64;
            let done = states.into_iter().map(|state| state.map(drop)).collect();
            let done = count(|report| &mut report.retried, done);
            let mut report = shared.report();
            report.retried -= archived;
            report.archived += archived;
            Ok(done)
        }
    }
}
