//! The `sprag` command: thin. Each file holds the arguments of a noun or verb and what it does with
//! them; every decision about a job is the library's.
//!
//! `args` is the grammar, `connect` finds the store, `out` writes data and `fail` errors.
#![allow(clippy::print_stdout, reason = "a command's data goes to stdout")]

mod args;
mod claim;
mod confirm;
mod connect;
mod demo;
mod enqueue;
mod fail;
mod from_file;
mod job;
mod out;
mod payload;
mod quarantine;
mod queue;
mod redact;
mod settle;
mod sweep;
mod units;
mod work;
mod workers;

use args::{Args, Command};
use fail::Failure;
use std::{io::IsTerminal, process::ExitCode};
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let args = match Args::read() {
        Ok(args) => args,
        Err(error) => return fail::usage(&error, std::env::args_os().any(|arg| arg == "--json")),
    };
    let json = args.global.json;
    match log_to_stderr(&args).and_then(|()| run(args)) {
        Ok(code) => code,
        Err(failure) => failure.report(json),
    }
}

fn run(args: Args) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(command(args))
}

async fn command(Args { global, command }: Args) -> Result<ExitCode, Failure> {
    let global = &global;
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
        Command::Queue(verb) => queue::queue(global, verb).await?,
        Command::Job(verb) => return job::job(global, verb).await,
        Command::Quarantine(verb) => quarantine::quarantine(global, verb).await?,
        Command::Worker(verb) => workers::worker(global, verb).await?,
        Command::Demo => return demo::demo(global).await,
        Command::DemoPart(part) => demo::part(global, part).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The library's log lines, `RUST_LOG` choosing among them. By default errors only; what `work` runs
/// and fails is worth a line as well.
fn log_to_stderr(args: &Args) -> Result<(), Failure> {
    if args.global.quiet {
        return Ok(());
    }
    let usual = match args.command {
        Command::Work(_) => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    };
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
