//! `sprag worker`.

use crate::{args::Global, connect, fail::Failure, out, units};
use serde::Serialize;
use sprag::{
    Inspector, WorkerId,
    store::{Wish, WorkerInfo},
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// The workers that were heard of within the hour; those silent for a minute are gone
    List,
    /// Ask a worker to claim nothing more; what it runs goes on
    Quiet { id: WorkerId },
    /// Ask a worker to claim nothing more and to end, as by SIGTERM
    Stop { id: WorkerId },
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    info: &'a WorkerInfo,
    gone: bool,
}

#[derive(Serialize)]
struct Asked<'a> {
    id: &'a str,
    asked: &'a str,
}

pub(crate) async fn worker(global: &Global, verb: Verb) -> Result<(), Failure> {
    let inspector = connect::inspector(global)?;
    let (id, wish) = match verb {
        Verb::List => return list(global, &inspector).await,
        Verb::Quiet { id } => (id, Wish::Quiet),
        Verb::Stop { id } => (id, Wish::Stop),
    };
    inspector.ask(&id, wish).await?;
    if global.json {
        return out::object(&Asked { id: id.as_str(), asked: wish.as_str() });
    }
    out::line(&format!(
        "worker {id} is asked to {}",
        match wish {
            Wish::Quiet => "be quiet",
            Wish::Stop => "stop",
        }
    ))
}

async fn list(global: &Global, inspector: &Inspector) -> Result<(), Failure> {
    let workers = inspector.workers().await?;
    if global.json {
        let answer = |info: &WorkerInfo| out::object(&Answer { info, gone: info.gone });
        return workers.iter().try_for_each(answer);
    }
    if workers.is_empty() {
        out::talk(global, "there is no worker");
        return Ok(());
    }
    let row = |info: WorkerInfo| {
        let busy = format!("{}/{}", info.busy, info.concurrency);
        let gone = if info.gone { " (gone)" } else { "" };
        let seen = format!("{}{gone}", units::shown(info.seen_at));
        let state = info.state.as_str().to_owned();
        [info.id, state, info.queues.join(" "), busy, info.version, seen]
    };
    let rows = workers.into_iter().map(row).collect();
    out::table(["worker", "state", "queues", "busy", "version", "seen"], rows)
}
