//! `sprag demo`: a true run, checked id by id.
//!
//! `deliveries` is the data; `producer` and `worker` are the processes; `journal` is what they
//! write down; `server` and `processes` start them; `watch` follows the run and kills a worker;
//! `check` compares what was told, what ran and what Redis holds; `tour` shows the keys.

mod check;
mod deliveries;
mod journal;
mod place;
mod processes;
mod producer;
mod report;
mod server;
mod tour;
mod watch;
mod worker;

use crate::{args::Global, fail::Failure, out};
use anyhow::anyhow;
use deliveries::Delivery;
use place::Place;
use sprag::Store;
use std::{path::PathBuf, process::ExitCode};
use tempfile::TempDir;

/// Unfinished webhooks beyond this are refused: low enough that the producers meet it.
const LIMIT: u64 = 300;

/// The processes of a demo.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Part {
    Producer {
        #[arg(long)]
        dir: PathBuf,
        /// Which of the producers this is
        #[arg(long)]
        share: usize,
    },
    Worker {
        #[arg(long)]
        dir: PathBuf,
    },
}

pub(crate) async fn part(global: &Global, part: Part) -> Result<(), Failure> {
    match part {
        Part::Producer { dir, share } => producer::run(global, &dir, share).await,
        Part::Worker { dir } => worker::run(global, &dir).await,
    }
}

pub(crate) async fn demo(global: &Global) -> Result<ExitCode, Failure> {
    let dir = tempfile::Builder::new().prefix("sprag-demo-").tempdir()?;
    let place = Place::find(global, &dir).await?;
    let ran = tokio::select! {
        ran = run(global, &place, &dir) => ran,
        () = interrupted() => Err(anyhow!("interrupted").into()),
    };
    // Also after a failure, and before the server ends.
    let cleaned = place.clean_up().await;
    let code = ran?;
    cleaned?;
    Ok(code)
}

async fn run(global: &Global, place: &Place, dir: &TempDir) -> Result<ExitCode, Failure> {
    let deliveries = Delivery::all()?;
    let store = place.store()?;
    store.limit(&deliveries::queue("webhooks")?, Some(LIMIT)).await?;
    out::talk(
        global,
        &format!(
            "2 producers now enqueue {} deliveries for 3 workers; the queue webhooks takes {LIMIT} \
             at a time, so the producers will have to wait.",
            deliveries.len()
        ),
    );
    let mut watch = watch::Watch::start(global, place, dir.path(), deliveries.len())?;
    watch.until_half_way().await?;
    watch.kill_a_worker().await?;
    watch.until_drained().await?;
    let run = watch.end().await?;

    out::talk(
        global,
        "All is done. Now every id is looked up in Redis and in the handlers' notes.",
    );
    let facts = check::Facts::gather(place, dir.path(), deliveries, run).await?;
    let verdict = check::judge(&facts);
    report::tell(global, &verdict)?;
    if !global.json {
        tour::show(global, place, &facts).await?;
    }
    Ok(if verdict.deviations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Ctrl-C or SIGTERM.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = term.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
