//! Settlements: what gathers while the previous calls are in flight leaves together.

use super::{
    Context, Shared,
    hooks::EndedJob,
    meters::{Meter, Outcome},
};
use crate::{
    model::{MAX_BATCH, QueueName, State, StoreError},
    store::{Archive, Complete, EndingReason, Held, Outcomes, Retry, Snooze, Store},
};
use std::{collections::HashMap, mem::discriminant, sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::sleep};

/// A call that was repeated for the store's whole budget is made again after so long.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// A run that is over, on its way to the store.
pub(super) struct Unsettled {
    pub(super) context: Context,
    pub(super) settlement: Settlement,
    /// None: no handler ran.
    pub(super) meter: Option<Arc<Meter>>,
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

impl Settlement {
    /// What the attempt said, if it failed.
    pub(super) fn error(&self) -> Option<&str> {
        match self {
            Self::Retry(retry) => Some(&retry.error),
            Self::Archive(archive) => archive.error.as_deref(),
            Self::Complete(_) | Self::Snooze(_) | Self::Requeue(_) => None,
        }
    }
}

/// Settles until no run is left and all is settled. What could not be settled goes out again with
/// what has come meanwhile, or after a pause.
pub(super) async fn settle_all(shared: Arc<Shared>, mut unsettled: mpsc::Receiver<Unsettled>) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            count = unsettled.recv_many(&mut batch, 4 * MAX_BATCH) => if count == 0 { return },
            () = sleep(AFTER_FAILURE), if !batch.is_empty() => {}
            // All that runs sent has been received before this branch is looked at.
            () = shared.runs_over.cancelled(), if batch.is_empty() => return,
        }
        batch = settle(&shared, std::mem::take(&mut batch)).await;
    }
}

/// Settles a batch: a call per queue and verb, all at once. Answers what is to be tried again.
pub(super) async fn settle(shared: &Shared, batch: Vec<Unsettled>) -> Vec<Unsettled> {
    let mut calls: HashMap<_, Vec<Unsettled>> = HashMap::new();
    for job in batch {
        let queue = job.context.queue().clone();
        calls.entry((queue, discriminant(&job.settlement))).or_default().push(job);
    }
    let mut slices = Vec::new();
    for ((queue, _), mut jobs) in calls {
        while jobs.len() > MAX_BATCH {
            slices.push((queue.clone(), jobs.split_off(jobs.len() - MAX_BATCH)));
        }
        slices.push((queue, jobs));
    }
    let again = slices.into_iter().map(|(queue, jobs)| settle_slice(shared, queue, jobs));
    futures_util::future::join_all(again).await.into_iter().flatten().collect()
}

/// Settles jobs of one queue by one verb.
async fn settle_slice(shared: &Shared, queue: QueueName, jobs: Vec<Unsettled>) -> Vec<Unsettled> {
    match call(shared.store(), &queue, &jobs).await {
        Ok(outcomes) => {
            for (job, outcome) in jobs.into_iter().zip(outcomes) {
                shared.running.remove(&job.context);
                match outcome {
                    Ok(outcome) => told(shared, job, outcome),
                    Err(error) => refused(shared, &job, &error),
                }
            }
            Vec::new()
        }
        // Repeated for the store's whole budget. A job is never run again because of this: as long as
        // the worker lives it is tried again, until the store says whose the job is. A worker that
        // ends does not wait for what is another's by now.
        Err(error @ StoreError::Unavailable(_)) => {
            let ends = shared.shutdown.is_draining();
            let (lost, kept): (Vec<_>, Vec<_>) =
                jobs.into_iter().partition(|job| ends && shared.running.is_lost(&job.context));
            tracing::error!(%queue, %error, again = kept.len(), given_up = lost.len(), "not settled");
            lost.iter().for_each(|job| given_up(shared, job));
            kept
        }
        Err(error) => {
            tracing::error!(%queue, %error, jobs = jobs.len(),
                "not settled; the jobs come back when their leases end");
            jobs.iter().for_each(|job| given_up(shared, job));
            Vec::new()
        }
    }
}

/// A job is settled: counted, and told to whom it concerns.
fn told(shared: &Shared, job: Unsettled, outcome: Outcome) {
    shared.report().count(outcome);
    match &job.meter {
        Some(meter) => meter.processed(outcome),
        None => shared.report().unhandled += 1,
    }
    if outcome == Outcome::Archived {
        let (context, envelope) = (&job.context, job.context.envelope());
        let reason = match &job.settlement {
            Settlement::Archive(archive) => archive.reason.into(),
            _ if context.attempt() + 1 >= envelope.max_attempts() => EndingReason::Exhausted,
            _ => EndingReason::Expired,
        };
        tracing::warn!(reason = reason.as_str(), queue = %context.queue(), kind = %context.kind(),
            job_id = %context.id(), "archived");
        shared.hooks.tell(EndedJob {
            queue: context.queue().clone(),
            id: context.id().clone(),
            kind: Some(context.kind().clone()),
            state: State::Archived,
            reason,
            error: job.settlement.error().map(str::to_owned),
        });
    }
}

fn refused(shared: &Shared, job: &Unsettled, error: &StoreError) {
    let (queue, job_id) = (job.context.queue(), job.context.id());
    match error {
        StoreError::LeaseRejected { .. } => {
            tracing::warn!(%queue, %job_id, "settlement refused: the lease was lost");
        }
        error => tracing::error!(%queue, %job_id, %error,
            "settlement refused; the job comes back when its lease ends"),
    }
    given_up(shared, job);
}

fn given_up(shared: &Shared, job: &Unsettled) {
    shared.running.remove(&job.context);
    shared.report().count(Outcome::Lost);
    if let Some(meter) = &job.meter {
        meter.processed(Outcome::Lost);
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

/// One call to the store. All jobs are settled by the verb of the first.
async fn call(
    store: &Arc<dyn Store>,
    queue: &QueueName,
    jobs: &[Unsettled],
) -> Result<Outcomes<Outcome>, StoreError> {
    let all = |outcome: Outcome, outcomes: Outcomes<()>| {
        outcomes.into_iter().map(|done| done.map(|()| outcome)).collect()
    };
    match &jobs[0].settlement {
        Settlement::Complete(_) => {
            let done = store.complete(queue, &of_kind!(jobs, Complete)).await?;
            Ok(all(Outcome::Completed, done))
        }
        Settlement::Archive(_) => {
            let done = store.archive(queue, &of_kind!(jobs, Archive)).await?;
            Ok(all(Outcome::Archived, done))
        }
        Settlement::Snooze(_) => {
            let done = store.snooze(queue, &of_kind!(jobs, Snooze)).await?;
            Ok(all(Outcome::Snoozed, done))
        }
        Settlement::Requeue(_) => {
            let done = store.requeue(queue, &of_kind!(jobs, Requeue)).await?;
            Ok(all(Outcome::Requeued, done))
        }
        Settlement::Retry(_) => {
            let states = store.retry(queue, &of_kind!(jobs, Retry)).await?;
            let settled = |state| match state {
                // It failed once too often, or its next attempt would come too late.
                State::Archived => Outcome::Archived,
                _ => Outcome::Retried,
            };
            Ok(states.into_iter().map(|state| state.map(settled)).collect())
        }
    }
}
