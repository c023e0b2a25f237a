//! `sprag worker`.

use crate::{args::Global, connect, fail::Failure, out, units};
use serde::Serialize;
use sprag::store::WorkerInfo;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// The workers that were heard of within the hour; those silent for a minute are gone
    List,
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    info: &'a WorkerInfo,
    gone: bool,
}

pub(crate) async fn worker(global: &Global, verb: Verb) -> Result<(), Failure> {
    let Verb::List = verb;
    let workers = connect::inspector(global)?.workers().await?;
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
        [info.id, info.queues.join(" "), busy, info.version, seen]
    };
    let rows = workers.into_iter().map(row).collect();
    out::table(["worker", "queues", "busy", "version", "seen"], rows)
}
