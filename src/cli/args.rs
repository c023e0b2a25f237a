//! The grammar: global flags, and the command that stands behind them.

use crate::{claim, demo, enqueue, job, quarantine, queue, settle, sweep, work, workers};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use sprag::Namespace;

/// Enqueue, claim, settle and look at jobs of sprag, a job queue on Redis.
///
/// Data goes to stdout, talk to stderr. Exit codes: 0 success, 2 invalid, 3 not found, 4 duplicate,
/// 5 id conflict, 6 quarantined, 7 backpressure, 8 lease rejected, 9 unavailable, 1 anything else.
#[derive(Debug, Parser)]
#[command(name = "sprag", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// Reads the command line.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let read = Self::try_parse();
        match read {
            Err(error) if error.kind() == ErrorKind::UnknownArgument => {
                Self::with_odd_number().ok_or(error)
            }
            read => read,
        }
    }

    /// clap knows that `-1` is a number and no flag, but of `-1E+5` it does not.
    fn with_odd_number() -> Option<Self> {
        let payload = |arg: clap::Arg| arg.allow_hyphen_values(true);
        let command =
            Self::command().mut_subcommand("enqueue", |it| it.mut_arg("payload", payload));
        let args = Self::from_arg_matches(&command.try_get_matches().ok()?).ok()?;
        let is_number = |text: &str| serde_json::from_str::<serde_json::Number>(text).is_ok();
        match &args.command {
            Command::Enqueue(job) if job.payload.as_deref().is_some_and(is_number) => Some(args),
            _ => None,
        }
    }
}

/// Flags of every command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Redis: redis://[user:password@]host[:port][/db] or redis+unix:///path.
    /// Else SPRAG_REDIS_URL, else REDIS_URL, else redis://127.0.0.1:6379
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Prefix of every key. Else SPRAG_NAMESPACE, else sprag
    #[arg(long, global = true, value_name = "NS")]
    pub(crate) namespace: Option<Namespace>,
    /// One JSON object per line instead of tables; errors too
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Answer yes to every question
    #[arg(long, global = true)]
    pub(crate) yes: bool,
    /// No talk on stderr but errors
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Enqueue(Box<enqueue::Args>),
    Claim(claim::Args),
    Extend(settle::ExtendArgs),
    Complete(settle::CompleteArgs),
    Retry(settle::RetryArgs),
    Archive(settle::ArchiveArgs),
    Snooze(settle::SnoozeArgs),
    Requeue(settle::RequeueArgs),
    Sweep(sweep::Args),
    Work(work::Args),
    /// Look at a queue and steer it
    #[command(subcommand)]
    Queue(queue::Verb),
    /// Look at a job and steer it
    #[command(subcommand)]
    Job(job::Verb),
    /// Look at fingerprints that killed their workers, close and open them
    #[command(subcommand)]
    Quarantine(quarantine::Verb),
    /// Look at workers
    #[command(subcommand)]
    Worker(workers::Verb),
    /// The tour: a true run of 3,000 jobs through five processes, one of which is killed.
    ///
    /// Uses the Redis of --url, SPRAG_REDIS_URL or REDIS_URL, in a namespace of its own whose keys
    /// it deletes; without one it starts a private redis-server and ends it.
    Demo,
    #[command(subcommand, hide = true)]
    DemoPart(demo::Part),
}
