//! `sprag queue`.

use crate::{
    args::Global,
    confirm::confirm,
    connect,
    fail::{self, Failure},
    out, units,
};
use serde::Serialize;
use sprag::{
    Inspector, QueueName, StoreError,
    store::{Day, QueueInfo},
};
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// All queues with their counters. Of one that is damaged stderr says why; exit code 1 then
    List,
    /// A queue's counters
    Show { queue: QueueName },
    /// What happened by the day (UTC), today first
    Stats {
        queue: QueueName,
        /// 1 to 90
        #[arg(long, value_name = "N", value_parser = units::whole::<u32>(1..=90), default_value = "7", allow_hyphen_values = true)]
        days: u32,
    },
    /// Let nothing be claimed; what runs goes on. Makes the queue if need be
    Pause { queue: QueueName },
    /// End a pause of a queue that is there
    Resume { queue: QueueName },
    /// Refuse jobs beyond so many unfinished ones; makes the queue if need be
    Limit {
        queue: QueueName,
        /// A number, or none
        #[arg(value_name = "N|none", value_parser = limit_value, allow_negative_numbers = true)]
        limit: Limit,
    },
    /// Delete a queue with all that is in it. Asks if that is more than one job
    Delete {
        queue: QueueName,
        /// Also while jobs are unfinished
        #[arg(long)]
        force: bool,
    },
}

/// Most jobs that may be unfinished.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(Option<u64>);

fn limit_value(text: &str) -> Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let number = text.parse().map_err(|_| "must be a whole number or none".to_owned())?;
    Ok(Limit(Some(number)))
}

#[derive(Serialize)]
struct Limited<'a> {
    queue: &'a str,
    limit: Option<u64>,
}

#[derive(Serialize)]
struct Paused<'a> {
    queue: &'a str,
    paused: bool,
}

#[derive(Serialize)]
struct Deleted<'a> {
    queue: &'a str,
    deleted: bool,
}

#[derive(Serialize)]
struct OfDay<'a> {
    queue: &'a str,
    #[serde(flatten)]
    day: &'a Day,
}

pub(crate) async fn queue(global: &Global, verb: Verb) -> Result<ExitCode, Failure> {
    let inspector = connect::inspector(global)?;
    match verb {
        Verb::List => list(global, inspector.each_queue().await?),
        verb => one(global, &inspector, verb).await.map(|()| ExitCode::SUCCESS),
    }
}

async fn one(global: &Global, inspector: &Inspector, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::List => Ok(()),
        Verb::Show { queue } => show(global, &inspector.queue(&queue).await?),
        Verb::Stats { queue, days } => stats(global, inspector, &queue, days).await,
        Verb::Pause { queue } => {
            inspector.pause(&queue).await?;
            tell_paused(global, &queue, true)
        }
        Verb::Resume { queue } => {
            inspector.resume(&queue).await?;
            tell_paused(global, &queue, false)
        }
        Verb::Limit { queue, limit: Limit(limit) } => {
            inspector.limit(&queue, limit).await?;
            if global.json {
                return out::object(&Limited { queue: queue.as_str(), limit });
            }
            let limit = shown_limit(limit);
            out::talk(global, &format!("{queue}: limit {limit}"));
            Ok(())
        }
        Verb::Delete { queue, force } => delete(global, inspector, &queue, force).await,
    }
}

fn tell_paused(global: &Global, queue: &QueueName, paused: bool) -> Result<(), Failure> {
    if global.json {
        return out::object(&Paused { queue: queue.as_str(), paused });
    }
    out::talk(global, &format!("{queue}: {}", if paused { "paused" } else { "resumed" }));
    Ok(())
}

async fn delete(
    global: &Global,
    inspector: &Inspector,
    queue: &QueueName,
    force: bool,
) -> Result<(), Failure> {
    let info = inspector.queue(queue).await?;
    let finished = info.completed + info.archived + info.cancelled + info.quarantined;
    if info.unfinished > 0 && !force {
        // As the store says it: nobody is asked for what would be refused.
        let text =
            format!("queue: {queue} has {} unfinished jobs; --force deletes", info.unfinished);
        return Err(StoreError::Invalid(text).into());
    }
    if info.unfinished + finished > 1 {
        let jobs = format!("{} unfinished and {finished} finished jobs", info.unfinished);
        confirm(global, &format!("delete queue {queue} with its {jobs}"))?;
    }
    inspector.delete_queue(queue, force).await?;
    if global.json {
        return out::object(&Deleted { queue: queue.as_str(), deleted: true });
    }
    out::talk(global, &format!("{queue}: deleted"));
    Ok(())
}

async fn stats(
    global: &Global,
    inspector: &Inspector,
    queue: &QueueName,
    days: u32,
) -> Result<(), Failure> {
    // Days of a queue that is not there are zero; a slip of the pen should not look like that.
    inspector.queue(queue).await?;
    let days = inspector.days(queue, days).await?;
    if global.json {
        let queue = queue.as_str();
        return days.iter().try_for_each(|day| out::object(&OfDay { queue, day }));
    }
    let row = |day: Day| {
        let counts = [day.completed, day.failed, day.crashed, day.expired, day.quarantined];
        let [completed, failed, crashed, expired, quarantined] = counts.map(|n| n.to_string());
        [day.day, completed, failed, crashed, expired, quarantined]
    };
    let header = ["day", "completed", "failed", "crashed", "expired", "quarantined"];
    out::table(header, days.into_iter().map(row).collect())
}

/// All that can be told; then of each that cannot, why. One that is damaged, or at a cluster's node that
/// is away, hides no other.
fn list(
    global: &Global,
    queues: Vec<(QueueName, Result<QueueInfo, StoreError>)>,
) -> Result<ExitCode, Failure> {
    let (mut infos, mut damaged) = (Vec::new(), Vec::new());
    for (queue, found) in queues {
        match found {
            Ok(info) => infos.push(info),
            Err(error) => damaged.push((queue, error)),
        }
    }
    fail::unless_all_are_away(infos.len(), &damaged)?;
    if global.json {
        infos.iter().try_for_each(out::object)?;
    } else if infos.is_empty() && damaged.is_empty() {
        out::talk(global, "there is no queue");
    } else if !infos.is_empty() {
        table(&infos)?;
    }
    Ok(fail::damaged(&damaged, global.json))
}

fn table(queues: &[QueueInfo]) -> Result<(), Failure> {
    let row = |info: &QueueInfo| {
        let counts = [info.pending, info.active, info.scheduled, info.retry, info.archived];
        let [pending, active, scheduled, retry, archived] = counts.map(|n| n.to_string());
        let limit = shown_limit(info.limit);
        let paused = shown_bool(info.paused);
        [info.queue.clone(), pending, active, scheduled, retry, archived, limit, paused]
    };
    let header =
        ["queue", "pending", "active", "scheduled", "retry", "archived", "limit", "paused"];
    out::table(header, queues.iter().map(row).collect())
}

fn shown_bool(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn show(global: &Global, info: &QueueInfo) -> Result<(), Failure> {
    if global.json {
        return out::object(info);
    }
    let oldest = info.oldest_pending_ms.map_or("-".to_owned(), |ms| format!("{ms} ms"));
    out::pairs(vec![
        ("queue", info.queue.clone()),
        ("pending", info.pending.to_string()),
        ("scheduled", info.scheduled.to_string()),
        ("active", info.active.to_string()),
        ("retry", info.retry.to_string()),
        ("completed", info.completed.to_string()),
        ("archived", info.archived.to_string()),
        ("cancelled", info.cancelled.to_string()),
        ("quarantined", info.quarantined.to_string()),
        ("unfinished", info.unfinished.to_string()),
        ("limit", shown_limit(info.limit)),
        ("paused", shown_bool(info.paused)),
        ("oldest pending", oldest),
        ("completed today", info.completed_today.to_string()),
        ("failed today", info.failed_today.to_string()),
    ])
}

fn shown_limit(limit: Option<u64>) -> String {
    limit.map_or("none".to_owned(), |limit| limit.to_string())
}
