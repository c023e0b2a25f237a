//! Settlements: what gathers while the previous calls are in flight leaves together.

use super::{
    Context, Shared,
    calls::{Calls, Heard},
    hooks::EndedJob,
    meters::{Meter, Outcome},
};
use crate::{
    model::{MAX_BATCH, QueueName, State, StoreError},
    store::{Archive, Complete, EndingReason, Held, Outcomes, Retry, Snooze, Store},
};
use std::{collections::HashMap, mem::discriminant, sync::Arc};
use tokio::{sync::mpsc, time::Instant};

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
/// what has come meanwhile. No queue's jobs wait for another's: it may be at a node that is away.
pub(super) async fn settle_all(shared: Arc<Shared>, mut unsettled: mpsc::Receiver<Unsettled>) {
    let (mut come, mut gathered) = (Vec::new(), Gathered::default());
    let mut calls = Calls::new();
    loop {
        let begun = Instant::now();
        let free = gathered.extract_if(|queue, _| calls.is_free(queue)).collect::<Vec<_>>();
        for (queue, jobs) in free {
            calls.make(&queue, settle_queue(shared.clone(), queue.clone(), jobs));
        }
        while let Some(heard) = calls.heard_in_round(begun).await {
            keep(&mut gathered, heard);
        }
        if gathered.keys().any(|queue| calls.is_free(queue)) {
            continue;
        }
        tokio::select! {
            biased;
            count = unsettled.recv_many(&mut come, 4 * MAX_BATCH) => if count == 0 { return },
            heard = calls.heard() => keep(&mut gathered, heard),
            // All that runs sent has been received before this branch is looked at.
            () = shared.runs_over.cancelled(), if gathered.is_empty() && calls.are_over() => return,
        }
        for job in come.drain(..) {
            gathered.entry(job.context.queue().clone()).or_default().push(job);
        }
    }
}

/// Jobs that are to be settled, by queue.
type Gathered = HashMap<QueueName, Vec<Unsettled>>;

/// What could not be settled is gathered again.
fn keep(gathered: &mut Gathered, heard: Heard<(), Vec<Unsettled>>) {
    if let Heard::Answer(queue, Err(again)) = heard {
        gathered.entry(queue).or_default().extend(again);
    }
}

/// Settles jobs of one queue: a call per verb, all at once. Fails with what is to be tried again.
pub(super) async fn settle_queue(
    shared: Arc<Shared>,
    queue: QueueName,
    jobs: Vec<Unsettled>,
) -> Result<(), Vec<Unsettled>> {
    let mut verbs: HashMap<_, Vec<Unsettled>> = HashMap::new();
    for job in jobs {
        verbs.entry(discriminant(&job.settlement)).or_default().push(job);
    }
    let mut slices = Vec::new();
    for mut jobs in verbs.into_values() {
        while jobs.len() > MAX_BATCH {
            slices.push(jobs.split_off(jobs.len() - MAX_BATCH));
        }
        slices.push(jobs);
    }
    let again = slices.into_iter().map(|jobs| settle_slice(&shared, &queue, jobs));
    let again = futures_util::future::join_all(again).await;
    let again: Vec<_> = again.into_iter().flatten().collect();
    if again.is_empty() { Ok(()) } else { Err(again) }
}

/// Settles jobs of one queue by one verb.
async fn settle_slice(shared: &Shared, queue: &QueueName, jobs: Vec<Unsettled>) -> Vec<Unsettled> {
    match call(shared.store(), queue, &jobs).await {
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

/// A job is not this worker's any more, and was not settled by it.
pub(super) fn given_up(shared: &Shared, job: &Unsettled) {
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
