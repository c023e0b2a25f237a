//! `sprag queue`.

use crate::{args::Global, connect, fail::Failure, out};
use serde::Serialize;
use sprag::{QueueName, Store, store::QueueInfo};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// A queue's counters
    Show { queue: QueueName },
    /// Refuse jobs beyond so many unfinished ones; makes the queue if need be
    Limit {
        queue: QueueName,
        /// A number, or none
        #[arg(value_name = "N|none", value_parser = limit_value, allow_negative_numbers = true)]
        limit: Limit,
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

pub(crate) async fn queue(global: &Global, verb: Verb) -> Result<(), Failure> {
    let store = connect::store(global)?;
    match verb {
        Verb::Show { queue } => show(global, &store.queue(&queue).await?),
        Verb::Limit { queue, limit: Limit(limit) } => {
            store.set(&queue, &[sprag::store::Setting::Limit(limit)]).await?;
            if global.json {
                return out::object(&Limited { queue: queue.as_str(), limit });
            }
            let limit = shown_limit(limit);
            out::talk(global, &format!("{queue}: limit {limit}"));
            Ok(())
        }
    }
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
        ("paused", if info.paused { "yes" } else { "no" }.to_owned()),
        ("oldest pending", oldest),
        ("completed today", info.completed_today.to_string()),
        ("failed today", info.failed_today.to_string()),
    ])
}

fn shown_limit(limit: Option<u64>) -> String {
    limit.map_or("none".to_owned(), |limit| limit.to_string())
}
