//! `sprag job wait`.

use super::show;
use crate::{args::Global, connect, fail::Failure, out, units};
use anyhow::anyhow;
use serde::{Serialize, de::IgnoredAny};
use sprag::{Client, JobId, QueueName, State, StoreError, WaitError};
use std::{process::ExitCode, time::Duration};

/// Wait until a job is finished, then show it: 0 if it is completed, 1 if it ended in another way,
/// 3 if it is gone: a completed job without a retention is, unless the wait began before. A timeout
/// is exit code 1 and, with --json, the error `timed_out`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    queue: QueueName,
    id: JobId,
    /// Give up after this
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    timeout: Option<Duration>,
}

/// What is known of a job that ended and was not kept.
#[derive(Serialize)]
struct Unkept<'a> {
    id: &'a str,
    queue: &'a str,
    state: State,
}

pub(super) async fn wait(global: &Global, args: Args) -> Result<ExitCode, Failure> {
    let Args { queue, id, timeout } = args;
    let mut wait = Client::new(connect::store(global)?).wait::<IgnoredAny>(&queue, &id);
    if let Some(timeout) = timeout {
        wait = wait.timeout(timeout);
    }
    let (state, code) = match wait.await {
        Ok(_) | Err(WaitError::NoResult | WaitError::Undecodable(_)) => {
            (State::Completed, ExitCode::SUCCESS)
        }
        Err(WaitError::Failed { state, .. }) => (state, ExitCode::FAILURE),
        Err(WaitError::Gone) => {
            let text = format!(
                "job {id}: there is none, or it was over before the wait began and was not kept: \
                 without a retention a completed job is gone"
            );
            return Err(StoreError::NotFound(text).into());
        }
        Err(WaitError::Store(error)) => return Err(error.into()),
        Err(WaitError::TimedOut) => {
            let after = timeout.unwrap_or_default().as_millis();
            return Err(Failure::TimedOut(format!("job {id} is not finished after {after}ms")));
        }
        Err(error) => return Err(anyhow!(error).into()),
    };
    match show::show(global, &queue, &id, false).await {
        Err(Failure::Store { error: StoreError::NotFound(_), .. }) => {
            Unkept { id: id.as_str(), queue: queue.as_str(), state }.say(global)?;
        }
        shown => shown?,
    }
    Ok(code)
}

impl Unkept<'_> {
    fn say(&self, global: &Global) -> Result<(), Failure> {
        if global.json {
            return out::object(self);
        }
        let Self { id, queue, state } = self;
        let rows = [("id", (*id).to_owned()), ("queue", (*queue).to_owned())];
        out::pairs(rows.into_iter().chain([("state", state.to_string())]).collect())
    }
}
