//! The `sprag` command: thin. Each file holds the arguments of a noun or verb and what it does with
//! them; every decision about a job is the library's.
//!
//! `args` is the grammar, `connect` finds the store, `out` writes data and `fail` errors.
#![allow(clippy::print_stdout, reason = "a command's data goes to stdout")]

mod acl;
mod args;
mod bench;
mod claim;
mod config;
mod confirm;
mod connect;
mod demo;
mod doctor;
mod enqueue;
mod envelope;
mod fail;
mod from_file;
mod job;
mod manual;
mod out;
mod payload;
mod quarantine;
mod queue;
mod redact;
mod scratch;
mod settle;
mod signals;
mod sweep;
mod top;
mod units;
mod work;
mod workers;

use args::{Args, Command, Global, PartArgs};
use config::Config;
use fail::Failure;
use std::{io::IsTerminal, process::ExitCode};
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    if let Some(PartArgs { part }) = PartArgs::read() {
        let global = Global::default();
        let done =
            log_to_stderr(false, LevelFilter::ERROR).and_then(|()| run(demo::part(&global, part)));
        return done.map_or_else(|failure| failure.report(false), |()| ExitCode::SUCCESS);
    }
    let Args { flags, command } = match Args::read() {
        Ok(args) => args,
        Err(error) => return fail::usage(&error, wants_json()),
    };
    let json = flags.says_json();
    let global = match Config::find(&flags) {
        Ok(file) => flags.with(file),
        Err(error) => return Failure::from(error).report(json),
    };
    // A line of log in the midst of a picture would spoil it.
    let drawn = matches!(command, Command::Top(_)) && std::io::stderr().is_terminal();
    let logging = log_to_stderr(global.quiet || drawn, usual_level(&command));
    match logging.and_then(|()| run(perform(&global, command))) {
        Ok(code) => code,
        Err(failure) => failure.report(global.json),
    }
}

/// Of a command line that could not be read.
fn wants_json() -> bool {
    let flag = std::env::args_os().any(|arg| arg == "--json" || arg == "--json=true");
    let file = Config::of_unread_args().json.unwrap_or(false);
    flag || file && !std::env::args_os().any(|arg| arg == "--json=false")
}

fn run<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(command)
}

async fn perform(global: &Global, command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Enqueue(args) => return enqueue::enqueue(global, args).await,
        Command::Claim(args) => claim::claim(global, args).await?,
        Command::Extend(args) => settle::extend(global, args).await?,
        Command::Complete(args) => settle::complete(global, args).await?,
        Command::Retry(args) => settle::retry(global, args).await?,
        Command::Archive(args) => settle::archive(global, args).await?,
        Command::Snooze(args) => settle::snooze(global, args).await?,
        Command::Requeue(args) => settle::requeue(global, args).await?,
        Command::Sweep(args) => sweep::sweep(global, args).await?,
        Command::Work(args) => return work::work(global, args).await,
        Command::Queue(verb) => return queue::queue(global, verb).await,
        Command::Job(verb) => return job::job(global, verb).await,
        Command::Quarantine(verb) => return quarantine::quarantine(global, verb).await,
        Command::Worker(verb) => workers::worker(global, verb).await?,
        Command::Top(args) => top::top(global, args).await?,
        Command::Bench(args) => bench::bench(global, args).await?,
        Command::Doctor(args) => return doctor::doctor(global, args).await,
        Command::Acl(args) => acl::acl(global, &args)?,
        Command::Demo => return demo::demo(global).await,
        Command::Completions { shell } => manual::completions(shell)?,
        Command::Man { command } => manual::manual(&command)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What `work` runs and fails is worth a line; of a command that ends at once errors alone are.
fn usual_level(command: &Command) -> LevelFilter {
    match command {
        Command::Work(_) => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    }
}

/// The library's log lines, `RUST_LOG` choosing among them.
fn log_to_stderr(quiet: bool, usual: LevelFilter) -> Result<(), Failure> {
    if quiet {
        return Ok(());
    }
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(usual.into())
        .parse_lossy(connect::env("RUST_LOG")?.unwrap_or_default());
    let colour = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
        && std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .init();
    Ok(())
}
