//! `sprag work`: runs a shell command per job.

mod child;
mod verdict;

use crate::{args::Global, connect, fail::Failure, out, units};
use child::Child;
use serde::Serialize;
use sprag::{
    Client, Context, StoreError, Worker,
    store::Callers,
    worker::{Answer, BoxError, Report, Shutdown, WorkerBuilder},
};
use std::{process::ExitCode, sync::Arc, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

/// From SIGKILL to having waited for the child, its pipes, and this program's own task.
const AFTER_KILL: Duration = Duration::from_secs(2);

/// Run a shell command for each job
///
/// The command is run by `sh -c` in a process group of its own, with the payload on stdin: JSON as it
/// is, MessagePack as JSON if it can be said so, raw bytes as they are. In its environment: SPRAG_ID,
/// SPRAG_KIND, SPRAG_QUEUE, SPRAG_FENCE, SPRAG_ATTEMPT and SPRAG_CRASH (both from 0), and TRACEPARENT
/// if the job belongs to a trace.
///
/// Exit 0 completes the job; what was printed to stdout, at most 64 KiB, is its result if the job has a
/// retention (JSON as it is, other text as a JSON string). 75 snoozes it. 65 archives it as undecodable. Any other code, or a
/// signal, is a failed attempt, tried again later; the end of stderr is its error. Nothing that it
/// prints is shown here: `sprag job show` does.
///
/// At a timeout, a cancellation, or the end of the grace the whole group gets SIGTERM, and SIGKILL
/// after --kill-after. What a command leaves running in its group when it exits is killed.
/// What has left the group (setsid), or outlives this program's own kill -9, goes on beside the next attempt.
///
/// SIGTERM, SIGHUP or Ctrl-C drains: nothing more is claimed, running commands have --grace, then their jobs
/// are put back. A second one kills them at once. SIGTSTP only stops claiming.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Queues to serve: `email`, `email=5` with a weight, `mail-*` for all that begin so
    #[arg(required = true, value_name = "QUEUE[=WEIGHT]")]
    queues: Vec<String>,
    /// The command, run by `sh -c`
    #[arg(long, value_name = "CMD")]
    exec: String,
    /// Commands at a time, 1 to 10000
    #[arg(long, default_value = "1", value_name = "N", value_parser = units::whole::<usize>(1..=10_000))]
    concurrency: usize,
    /// How long a job stays this worker's without a word from it; extended while its command runs
    #[arg(long, default_value = "30s", value_name = "DUR", value_parser = units::lease)]
    lease: Duration,
    /// How long running commands may take to finish at shutdown
    #[arg(long, default_value = "25s", value_name = "DUR", value_parser = units::duration)]
    grace: Duration,
    /// How long an attempt may take, unless its job says so itself
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    timeout: Option<Duration>,
    /// How long a job waits whose command exits with 75
    #[arg(long, default_value = "30s", value_name = "DUR", value_parser = units::duration)]
    snooze: Duration,
    /// From SIGTERM to SIGKILL
    #[arg(long, default_value = "5s", value_name = "DUR", value_parser = units::duration)]
    kill_after: Duration,
    /// Serve a queue only while those named before it are empty
    #[arg(long)]
    strict: bool,
    /// Run what can be run now, one command after another, and end: with an error's exit code if the
    /// store ended it
    #[arg(long, conflicts_with = "concurrency")]
    until_empty: bool,
}

const EXAMPLES: &str = "\
Examples:
  sprag work mail --exec 'jq -r .user | xargs ./send-welcome'
  sprag work mail=5 reports --concurrency 4 --timeout 5m \\
      --exec './run \"$SPRAG_KIND\"'
  sprag work mail --exec ./send --until-empty
                                     from cron: runs what there is, and ends
Its jobs come from `sprag enqueue mail welcome '{\"user\":7}'`.";

/// What was done, told at the end.
#[derive(Serialize)]
struct Done {
    completed: u64,
    retried: u64,
    archived: u64,
    snoozed: u64,
    requeued: u64,
    lost: u64,
}

pub(crate) async fn work(global: &Global, args: Args) -> Result<ExitCode, Failure> {
    let mut worker = builder(global, &args)?.build()?;
    let report = if args.until_empty {
        worker.run_until_empty().await?
    } else {
        if !global.quiet {
            eprintln!("worker {} works; Ctrl-C drains", worker.id());
        }
        let hung_up = tokio::spawn(drain_at_hangup(worker.shutdown()));
        let report = worker.run().await;
        hung_up.abort();
        report
    };
    tell(global, &report)?;
    Ok(ExitCode::SUCCESS)
}

/// Whose terminal is closed ends as if it was told to: its commands must not go on without it.
async fn drain_at_hangup(shutdown: Shutdown) {
    match signal(SignalKind::hangup()) {
        Ok(mut hangup) => {
            hangup.recv().await;
            shutdown.drain();
        }
        Err(error) => tracing::error!(%error, "cannot listen to SIGHUP"),
    }
}

fn builder(global: &Global, args: &Args) -> Result<WorkerBuilder, Failure> {
    let how = Arc::new(How {
        command: args.exec.clone(),
        snooze: args.snooze,
        kill_after: args.kill_after,
    });
    let service = tower::service_fn(move |context: Context| run(how.clone(), context));
    // One that ends has somebody who waits for it, or tries again.
    let client = if args.until_empty {
        Client::new(connect::store_of(global, Callers::Random)?)
    } else {
        connect::client(global)?
    };
    let mut builder = Worker::builder(&client)
        .fallback(service)
        .concurrency(args.concurrency)
        .lease(args.lease)
        .grace(args.grace)
        // The command's end is waited for: its job must not be put back while it runs.
        .cancel_grace(args.kill_after + AFTER_KILL);
    if let Some(timeout) = args.timeout {
        builder = builder.timeout(timeout);
    }
    if args.strict {
        builder = builder.strict_order();
    }
    for queue in &args.queues {
        let (name, weight) = weighted(queue)?;
        builder = builder.weighted_queue(name, weight);
    }
    Ok(builder)
}

fn weighted(text: &str) -> Result<(&str, u32), StoreError> {
    let Some((name, weight)) = text.split_once('=') else { return Ok((text, 1)) };
    let weight = weight.parse().map_err(|_| {
        StoreError::Invalid(format!("weight: {weight:?} in {text:?}; must be 1 to 1000"))
    })?;
    Ok((name, weight))
}

/// How commands are run.
struct How {
    command: String,
    snooze: Duration,
    kill_after: Duration,
}

/// One attempt.
async fn run(how: Arc<How>, context: Context) -> Result<Answer, BoxError> {
    let mut child = Child::start(&how.command, &context)?;
    let status = tokio::select! {
        status = child.wait() => status?,
        _ = context.cancelled() => child.stop(how.kill_after).await?,
    };
    verdict::of(child.collect(status).await, how.snooze)
}

fn tell(global: &Global, report: &Report) -> Result<(), Failure> {
    let Report { completed, retried, archived, snoozed, requeued, lost, .. } = *report;
    let done = Done { completed, retried, archived, snoozed, requeued, lost };
    if global.json {
        return out::object(&done);
    }
    if global.quiet {
        return Ok(());
    }
    out::pairs(vec![
        ("completed", completed.to_string()),
        ("retried", retried.to_string()),
        ("archived", archived.to_string()),
        ("snoozed", snoozed.to_string()),
        ("requeued", requeued.to_string()),
        ("lost", lost.to_string()),
    ])
}
