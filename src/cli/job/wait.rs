//! `sprag job wait`.

use super::show;
use crate::{args::Global, connect, fail::Failure, units};
use anyhow::anyhow;
use sprag::{JobId, QueueName, State};
use std::{process::ExitCode, time::Duration};

/// Looks so soon again at first, then less and less often: a long job is not asked after hotly.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Wait until a job is finished, then show it: 0 if it is completed, 1 if it ended in another way,
/// 3 if it is gone
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    queue: QueueName,
    id: JobId,
    /// Give up after this
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    timeout: Option<Duration>,
}

pub(super) async fn wait(global: &Global, args: Args) -> Result<ExitCode, Failure> {
    let Args { queue, id, timeout } = args;
    let waiting = finished(global, &queue, &id);
    let state = match timeout {
        None => waiting.await?,
        Some(timeout) => tokio::time::timeout(timeout, waiting)
            .await
            .map_err(|_| anyhow!("job {id} is not finished after {}ms", timeout.as_millis()))??,
    };
    show::show(global, &queue, &id, false).await?;
    Ok(if state == State::Completed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn finished(global: &Global, queue: &QueueName, id: &JobId) -> Result<State, Failure> {
    let inspector = connect::inspector(global)?;
    let mut pause = LOOK.0;
    loop {
        let state = inspector.job(queue, id).await?.state;
        if !state.is_unfinished() {
            return Ok(state);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK.1);
    }
}
