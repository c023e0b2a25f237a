//! The verbs of a job's holder: `extend`, `complete`, `retry`, `archive`, `snooze`, `requeue`.

use crate::{args::Global, connect, fail::Failure, out, payload, units};
use serde::Serialize;
use sha2::{Digest, Sha256};
use sprag::{
    Fence, JobId, QueueName, RedisStore, State, Store, StoreError,
    store::{Archive, ArchiveReason, Callers, Complete, Held, MAX_RESULT, Outcomes, Retry, Snooze},
    worker,
};
use std::time::Duration;

/// The job that is held.
#[derive(Debug, clap::Args)]
struct Job {
    queue: QueueName,
    id: JobId,
    /// The number that claim gave
    #[arg(long, value_name = "F", value_parser = units::whole::<u64>(0..=u64::MAX), allow_hyphen_values = true)]
    fence: u64,
}

impl Job {
    fn held(&self) -> Held {
        Held { id: self.id.clone(), fence: Fence(self.fence) }
    }

    fn tell(&self, global: &Global, state: State) -> Result<(), Failure> {
        if !global.json {
            out::talk(global, &format!("{}: {state}", self.id));
            return Ok(());
        }
        out::object(&self.answer(state))
    }

    fn answer(&self, state: State) -> Answer<'_> {
        let (id, queue) = (self.id.as_str(), self.queue.as_str());
        Answer { id, queue, fence: self.fence, state, result_dropped: false }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    queue: &'a str,
    fence: u64,
    state: State,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    result_dropped: bool,
}

fn only<T>(mut outcomes: Outcomes<T>) -> Result<T, StoreError> {
    outcomes.pop().unwrap_or_else(|| Err(StoreError::Backend("no outcome".to_owned())))
}

/// Hold a job for longer
#[derive(Debug, clap::Args)]
pub(crate) struct ExtendArgs {
    #[command(flatten)]
    job: Job,
    /// From now on
    #[arg(long, value_name = "DUR", value_parser = units::lease, default_value = "30s", allow_hyphen_values = true)]
    lease: Duration,
}

pub(crate) async fn extend(
    global: &Global,
    ExtendArgs { job, lease }: ExtendArgs,
) -> Result<(), Failure> {
    only(connect::store(global)?.extend(&job.queue, &[job.held()], lease).await?)?;
    job.tell(global, State::Active)
}

/// A job is done
#[derive(Debug, clap::Args)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    job: Job,
    /// A JSON text, @file, or - for stdin; kept as long as the job is
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    result: Option<String>,
}

pub(crate) async fn complete(global: &Global, args: CompleteArgs) -> Result<(), Failure> {
    let CompleteArgs { job, result } = args;
    let result = result.map(|result| payload::read("--result", &result)).transpose()?;
    result.as_ref().map_or(Ok(()), |result| payload::check_json("--result", result))?;
    let bytes = result.as_ref().map_or(0, Vec::len);
    let complete = Complete { held: job.held(), result: result.map(Into::into) };
    let store = connect::store(global)?;
    let has_result = complete.result.is_some();
    only(store.complete(&job.queue, &[complete]).await?)?;
    let why = match has_result {
        true if bytes > MAX_RESULT => {
            Some(format!("of {bytes} bytes; at most {MAX_RESULT} are kept"))
        }
        true if is_gone(&store, &job).await => {
            Some("with the job, which has no retention".to_owned())
        }
        _ => None,
    };
    if global.json {
        let result_dropped = why.is_some();
        return out::object(&Answer { result_dropped, ..job.answer(State::Completed) });
    }
    if let Some(why) = why {
        // Something is lost: also when it shall be quiet.
        out::warn(&format!("{}: its result was dropped: {why}", job.id));
    }
    job.tell(global, State::Completed)
}

/// The job was deleted when it was completed: neither it nor the queue has a retention. A look that
/// fails tells nothing: the job is complete all the same.
async fn is_gone(store: &RedisStore, job: &Job) -> bool {
    matches!(store.show(&job.queue, &job.id).await, Err(StoreError::NotFound(_)))
}

/// An attempt failed: try again later, or archive it if that was the last
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    job: Job,
    /// What went wrong
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    error: String,
    /// When to try again [default: 15 s + (attempt - 1)^4 s, at most a day, ± 15 %]
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true)]
    delay: Option<Duration>,
}

pub(crate) async fn retry(
    global: &Global,
    RetryArgs { job, error, delay }: RetryArgs,
) -> Result<(), Failure> {
    let (store, delay) = match delay {
        Some(delay) => (connect::store(global)?, delay),
        None => {
            // The delay is another one each time: the request is known by what it says.
            let store = connect::store_of(global, Callers::PerRequest(digest(&error)))?;
            let delay = usual_delay(&store, &job).await?;
            (store, delay)
        }
    };
    let retry = Retry { held: job.held(), delay, error };
    let state = only(store.retry(&job.queue, &[retry]).await?)?;
    job.tell(global, state)
}

fn digest(text: &str) -> u64 {
    let digest = Sha256::digest(text);
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The library's back-off after the attempt that failed now. The verdict on a job that is gone is
/// the script's, which may know this call as a repeat.
async fn usual_delay(store: &RedisStore, job: &Job) -> Result<Duration, StoreError> {
    let attempt = match store.show(&job.queue, &job.id).await {
        Ok(shown) => shown.attempt,
        Err(StoreError::NotFound(_)) => 0,
        Err(error) => return Err(error),
    };
    let delay = worker::Exponential::default().after(attempt + 1);
    Ok(Duration::from_millis(units::millis(delay)))
}

/// Give a job up
#[derive(Debug, clap::Args)]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    job: Job,
    /// What went wrong
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    error: Option<String>,
    /// Its payload cannot be decoded
    #[arg(long)]
    undecodable: bool,
}

pub(crate) async fn archive(global: &Global, args: ArchiveArgs) -> Result<(), Failure> {
    let ArchiveArgs { job, error, undecodable } = args;
    let reason = if undecodable { ArchiveReason::Undecodable } else { ArchiveReason::Discarded };
    let archive = Archive { held: job.held(), reason, error };
    only(connect::store(global)?.archive(&job.queue, &[archive]).await?)?;
    job.tell(global, State::Archived)
}

/// Run a job later, with no attempt spent
#[derive(Debug, clap::Args)]
pub(crate) struct SnoozeArgs {
    #[command(flatten)]
    job: Job,
    /// How much later
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true)]
    delay: Duration,
}

pub(crate) async fn snooze(
    global: &Global,
    SnoozeArgs { job, delay }: SnoozeArgs,
) -> Result<(), Failure> {
    let snooze = Snooze { held: job.held(), delay };
    only(connect::store(global)?.snooze(&job.queue, &[snooze]).await?)?;
    job.tell(global, State::Scheduled)
}

/// Put a job back to the front, with no attempt spent
#[derive(Debug, clap::Args)]
pub(crate) struct RequeueArgs {
    #[command(flatten)]
    job: Job,
}

pub(crate) async fn requeue(
    global: &Global,
    RequeueArgs { job }: RequeueArgs,
) -> Result<(), Failure> {
    only(connect::store(global)?.requeue(&job.queue, &[job.held()]).await?)?;
    job.tell(global, State::Pending)
}
