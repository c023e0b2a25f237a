//! `sprag job`.

mod list;
mod show;
mod steer;
mod wait;

use crate::{args::Global, fail::Failure};
use sprag::{JobId, QueueName, store::Operation};
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(list::Args),
    /// Everything known of a job
    Show {
        queue: QueueName,
        id: JobId,
        /// Its payload, too
        #[arg(long)]
        payload: bool,
    },
    Wait(wait::Args),
    /// Stop a job, also while it runs: its holder's fence is superseded
    Cancel(steer::Args),
    /// Start a completed, archived or cancelled job again
    Rerun(steer::Args),
    /// Make a scheduled or retry job the next one
    Run(steer::Args),
    /// Give an unfinished job up
    Archive(steer::Args),
    /// Forget a job; one that is active must be cancelled first
    Delete(steer::Args),
}

pub(crate) async fn job(global: &Global, verb: Verb) -> Result<ExitCode, Failure> {
    let (operation, args) = match verb {
        Verb::List(args) => {
            return list::list(global, args).await.map(|()| ExitCode::SUCCESS);
        }
        Verb::Show { queue, id, payload } => {
            return show::show(global, &queue, &id, payload).await.map(|()| ExitCode::SUCCESS);
        }
        Verb::Wait(args) => return wait::wait(global, args).await,
        Verb::Cancel(args) => (Operation::Cancel, args),
        Verb::Rerun(args) => (Operation::Rerun, args),
        Verb::Run(args) => (Operation::Run, args),
        Verb::Archive(args) => (Operation::Archive, args),
        Verb::Delete(args) => (Operation::Delete, args),
    };
    steer::steer(global, operation, args).await
}
