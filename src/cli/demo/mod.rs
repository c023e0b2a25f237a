//! `sprag demo`: a true run, checked id by id.
//!
//! `deliveries` is the data; `producer` and `worker` are the processes; `journal` is what they
//! write down; `server` and `processes` start them; `watch` follows the run and kills a worker;
//! `special` is a burst of events and a job that kills its workers;
//! `in_memory` is the tour where there is no Redis;
//! `check` compares what was told, what ran and what Redis holds; `tour` shows the keys.

mod check;
mod deliveries;
mod in_memory;
mod journal;
mod place;
mod processes;
mod producer;
mod report;
mod server;
mod special;
mod tour;
mod watch;
mod worker;

use crate::{args::Global, connect, fail::Failure, out, signals::Signals};
use anyhow::anyhow;
use deliveries::Delivery;
use place::Place;
use processes::Parts;
use sprag::{Store, store::Setting};
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
    SpecialWorker {
        #[arg(long)]
        dir: PathBuf,
    },
}

pub(crate) async fn part(global: &Global, part: Part) -> Result<(), Failure> {
    match part {
        Part::Producer { dir, share } => producer::run(global, &dir, share).await,
        Part::Worker { dir } => worker::run(global, &dir).await,
        Part::SpecialWorker { dir } => special::worker(global, &dir).await,
    }
}

pub(crate) async fn demo(global: &Global) -> Result<ExitCode, Failure> {
    // Before there is anything that would be left behind.
    let mut signals = Signals::listen()?;
    let interrupted = || Failure::from(anyhow!("interrupted"));
    let dir = tempfile::Builder::new().prefix("sprag-demo-").tempdir()?;
    if connect::given_url(global)?.is_none() && !server::is_there()? {
        return tokio::select! {
            toured = in_memory::tour(global, dir.path()) => toured,
            () = signals.one() => Err(interrupted()),
        };
    }
    let place = tokio::select! {
        place = Place::find(global, &dir) => place?,
        () = signals.one() => return Err(interrupted()),
    };
    let (mut parts, mut special) = (Parts::default(), Parts::default());
    let ran = tokio::select! {
        ran = run(global, &place, &dir, &mut parts, &mut special) => ran,
        () = signals.one() => Err(interrupted()),
    };
    // Also after a failure, and before the server ends.
    parts.end().await;
    special.end().await;
    match (ran, place.clean_up().await) {
        (Err(failure), Err(left)) => {
            out::warn(&crate::redact::redacted(&format!("sprag: {left:#}")));
            Err(failure)
        }
        (ran, cleaned) => {
            let code = ran?;
            cleaned?;
            Ok(code)
        }
    }
}

async fn run(
    global: &Global,
    place: &Place,
    dir: &TempDir,
    parts: &mut Parts,
    special: &mut Parts,
) -> Result<ExitCode, Failure> {
    let deliveries = Delivery::all()?;
    let store = place.store()?;
    store.set(&deliveries::queue("webhooks")?, &[Setting::Limit(Some(LIMIT))]).await?;
    out::talk(
        global,
        &format!(
            "2 producers now enqueue {} deliveries for 3 workers. The queue webhooks takes\n\
             {LIMIT} at a time: more are refused (backpressure), and the producers wait.",
            deliveries.len()
        ),
    );
    let mut watch = watch::Watch::start(global, place, dir.path(), parts, deliveries.len())?;
    let main = async {
        watch.until_half_way().await?;
        watch.kill_a_worker().await?;
        watch.until_drained().await?;
        Ok::<_, Failure>(watch.end().await?)
    };
    let (run, story) = tokio::try_join!(main, special::run(place, dir.path(), special))?;

    out::talk(
        global,
        "All is done. Now every id is looked up in Redis and in the handlers' notes.",
    );
    let facts = check::Facts::gather(place, dir.path(), deliveries, run).await?;
    let mut verdict = check::judge(&facts);
    story.judge(&mut verdict);
    report::tell(global, &verdict)?;
    if !global.json {
        tour::show(global, place, &facts).await?;
    }
    Ok(if verdict.deviations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
