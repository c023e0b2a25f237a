//! The grammar: global flags, and the command that stands behind them.

use crate::{
    acl, bench, claim, config::Config, demo, doctor, enqueue, job, quarantine, queue, settle,
    sweep, top, work, workers,
};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use sprag::Namespace;
use std::path::PathBuf;

/// Enqueue, claim, settle and look at jobs of sprag, a job queue on Redis.
///
/// Data goes to stdout, talk to stderr. Exit codes: 0 success, 2 invalid, 3 not found, 4 duplicate,
/// 5 id conflict, 6 quarantined, 7 backpressure, 8 lease rejected, 9 unavailable, 1 anything else.
///
/// With --json an error is one object on stderr, whose `error` is one of these in snake_case; of
/// what is exit 1 it is `backend` (the server's refusal), `timed_out` (`job wait --timeout`) or
/// `other` (what the store has no part in, such as stdout on a full disk).
#[derive(Debug, Parser)]
#[command(name = "sprag", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) flags: Flags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
A shell command for each job, on a Redis from 7.0 on:
  sprag enqueue mail welcome '{\"user\":7}'   a job of kind welcome, in queue mail
  sprag work mail --exec 'cat >>mail.log'   runs that once a job, the payload on
                                            stdin; Ctrl-C ends it
  sprag queue list                          what waits, runs, failed, is given up
  sprag job list mail --state retry         what failed, and is tried again
  sprag help work                           what the command's exit code means

Settings: a flag counts before the environment, that before the file of
--config or SPRAG_CONFIG, else ./sprag.toml, else
$XDG_CONFIG_HOME/sprag/sprag.toml, whose keys are url, namespace, json, yes and
quiet. A URL without a password takes that of SPRAG_REDIS_PASSWORD, or of the
file that SPRAG_REDIS_PASSWORD_FILE names.";

/// A process of the demo: no command for people, and in no list of them.
#[derive(Debug, Parser)]
#[command(name = "sprag demo-part")]
pub(crate) struct PartArgs {
    #[command(subcommand)]
    pub(crate) part: demo::Part,
}

impl PartArgs {
    /// If this process is one.
    pub(crate) fn read() -> Option<Self> {
        let mut args = std::env::args_os().skip(1);
        (args.next()? == "demo-part").then(|| Self::parse_from(std::env::args_os().skip(1)))
    }
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
pub(crate) struct Flags {
    /// Redis: redis://[user:password@]host[:port][/db], redis+unix:///path,
    /// redis+sentinel://host,host/master, redis+cluster://host,host; rediss… is TLS (?ca=FILE).
    /// Else SPRAG_REDIS_URL, else REDIS_URL, else redis://127.0.0.1:6379
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,
    /// Prefix of every key. Else SPRAG_NAMESPACE, else sprag
    #[arg(long, global = true, value_name = "NS")]
    namespace: Option<Namespace>,
    /// One JSON object per line instead of tables; errors too
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    json: Option<bool>,
    /// Answer yes to every question
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    yes: Option<bool>,
    /// No talk on stderr but errors
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    quiet: Option<bool>,
    /// Settings that are not given otherwise. Else SPRAG_CONFIG, else sprag.toml if there is one
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// What flags and file say, put together. Of the environment asks `connect`.
#[derive(Debug, Default)]
pub(crate) struct Global {
    pub(crate) url: Option<String>,
    pub(crate) namespace: Option<Namespace>,
    pub(crate) json: bool,
    pub(crate) yes: bool,
    pub(crate) quiet: bool,
    /// Behind the environment.
    pub(crate) file: Config,
}

impl Flags {
    /// Whether errors are objects, as far as flags tell.
    pub(crate) fn says_json(&self) -> bool {
        self.json.unwrap_or(false)
    }

    pub(crate) fn with(self, file: Config) -> Global {
        let is = |flag: Option<bool>, file: Option<bool>| flag.or(file).unwrap_or(false);
        Global {
            json: is(self.json, file.json),
            yes: is(self.yes, file.yes),
            quiet: is(self.quiet, file.quiet),
            url: self.url,
            namespace: self.namespace,
            file,
        }
    }
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
    Top(top::Args),
    Bench(bench::Args),
    Doctor(doctor::Args),
    Acl(acl::Args),
    /// The tour: a true run of 3,000 jobs through five processes, one of which is killed.
    ///
    /// Uses the Redis of --url, SPRAG_REDIS_URL or REDIS_URL, in a namespace of its own whose keys
    /// it deletes; without one it starts a private redis-server and ends it.
    Demo,
    /// Print what makes a shell complete this command, for example into
    /// ~/.local/share/bash-completion/completions/sprag
    Completions {
        shell: clap_complete::Shell,
    },
    /// Print the manual, of a command if one is named: sprag man job list | man -l -
    Man {
        command: Vec<String>,
    },
}
