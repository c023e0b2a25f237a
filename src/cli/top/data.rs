//! What is asked of the store, and what it answered. Each question is bounded: a queue's counters, a
//! page of jobs, a job.

use crate::{out::cut, redact::redacted};
use sprag::{
    Fingerprint, Inspector, JobId, QueueName, State, StoreError, Timestamp,
    inspect::Jobs,
    store::{Change, JobInfo, Listed, Operation, QueueInfo, Wish, WorkerInfo},
};
use std::time::Duration;

/// Jobs of a page.
pub(super) const PAGE: usize = 100;
/// How long a page is searched for that has a job on it.
const SEARCH: Duration = Duration::from_millis(500);
/// Of an error's text so much is shown.
const LONGEST_ERROR: usize = 500;

/// What a screen shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Want {
    Queues,
    Workers,
    Jobs { queue: QueueName, state: State, cursor: Option<String> },
    Job { queue: QueueName, id: JobId },
}

/// The same, answered.
#[derive(Debug)]
pub(super) enum Data {
    Queues(Vec<Found>),
    Workers(Vec<WorkerInfo>),
    Jobs { counts: QueueInfo, jobs: Vec<Listed>, next: Option<String> },
    Job(Box<JobInfo>),
}

/// A queue, or why its counters cannot be told.
pub(super) type Found = (QueueName, Result<QueueInfo, String>);

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) text: String,
    /// It is not there, and waiting brings it back hardly.
    pub(super) gone: bool,
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self { text: told(&error), gone: matches!(error, StoreError::NotFound(_)) }
    }
}

fn told(error: &StoreError) -> String {
    cut(&redacted(&error.to_string()), LONGEST_ERROR)
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) want: Want,
    pub(super) at: Timestamp,
    pub(super) data: Result<Data, Trouble>,
}

pub(super) async fn ask(inspector: Inspector, want: Want) -> Answer {
    let data = found(&inspector, &want).await.map_err(Trouble::from);
    Answer { want, at: Timestamp::now(), data }
}

async fn found(inspector: &Inspector, want: &Want) -> Result<Data, StoreError> {
    match want {
        Want::Queues => queues(inspector).await,
        Want::Workers => inspector.workers().await.map(Data::Workers),
        Want::Job { queue, id } => inspector.job(queue, id).await.map(|job| Data::Job(job.into())),
        Want::Jobs { queue, state, cursor } => {
            let counts = inspector.queue(queue).await?;
            let mut jobs = inspector.jobs(queue, *state)?.page_size(PAGE);
            if let Some(cursor) = cursor {
                jobs = jobs.from_cursor(cursor);
            }
            let page = page(&mut jobs).await?;
            Ok(Data::Jobs { counts, jobs: page, next: jobs.cursor().map(str::to_owned) })
        }
    }
}

/// A page; of a queue with a great many entries of jobs that left it perhaps an empty one, behind
/// which the next one begins.
async fn page(jobs: &mut Jobs) -> Result<Vec<Listed>, StoreError> {
    let start = jobs.cursor().map(str::to_owned);
    let found = match tokio::time::timeout(SEARCH, jobs.next_page()).await {
        Ok(found) => found?,
        Err(_) if jobs.cursor() != start.as_deref() => None,
        // It is the store that is slow.
        Err(_) => jobs.next_page().await?,
    };
    Ok(found.unwrap_or_default())
}

async fn queues(inspector: &Inspector) -> Result<Data, StoreError> {
    let found = inspector.each_queue().await?;
    let away = |(_, info): &(_, Result<_, _>)| matches!(info, Err(StoreError::Unavailable(_)));
    // If none answers that is the store's state, not a queue's.
    match found.first() {
        Some((_, Err(error))) if found.iter().all(away) => Err(error.clone()),
        _ => {
            let shown = |(queue, info): (_, Result<_, _>)| (queue, info.map_err(|e| told(&e)));
            Ok(Data::Queues(found.into_iter().map(shown).collect()))
        }
    }
}

/// What an operator does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Pause(QueueName),
    Resume(QueueName),
    Operate(Operation, QueueName, JobId),
    Release(QueueName, Fingerprint),
    Ask(Wish, String),
}

impl Action {
    /// What is asked before, and what is told to be done.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Pause(queue) => format!("pause queue {queue}"),
            Self::Resume(queue) => format!("resume queue {queue}"),
            Self::Operate(operation, queue, id) => {
                format!("{} job {id} of queue {queue}", operation.as_str())
            }
            Self::Release(queue, fingerprint) => {
                format!("release all jobs of fingerprint {fingerprint} of queue {queue}")
            }
            Self::Ask(Wish::Quiet, id) => format!("ask worker {id} to be quiet"),
            Self::Ask(Wish::Stop, id) => format!("ask worker {id} to stop"),
        }
    }
}

/// An action, and what came of it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) action: Action,
    pub(super) outcome: Result<String, Trouble>,
}

pub(super) async fn perform(inspector: Inspector, action: Action) -> Done {
    let outcome = outcome(&inspector, &action).await.map_err(Trouble::from);
    Done { action, outcome }
}

async fn outcome(inspector: &Inspector, action: &Action) -> Result<String, StoreError> {
    match action {
        Action::Pause(queue) => inspector.pause(queue).await.map(|()| "done".to_owned()),
        Action::Resume(queue) => inspector.resume(queue).await.map(|()| "done".to_owned()),
        Action::Ask(wish, id) => inspector.ask(id, *wish).await.map(|()| "done".to_owned()),
        Action::Operate(operation, queue, id) => {
            let change = inspector.operate(queue, *operation, id).await?;
            let told = match change {
                Change::Changed => "done",
                Change::Unchanged => "unchanged: it was so before",
            };
            Ok(told.to_owned())
        }
        Action::Release(queue, fingerprint) => {
            let released = inspector.release(queue, fingerprint.as_str()).await?;
            Ok(format!("{} pending again, {} archived", released.released, released.archived))
        }
    }
}
