//! `sprag quarantine`.

use crate::{
    args::Global,
    connect,
    fail::{self, Failure},
    out, units,
};
use serde::Serialize;
use sprag::{
    Fingerprint, Inspector, QueueName, StoreError,
    store::{Change, Quarantine},
};
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// The fingerprints in quarantine, of one queue or all
    List { queue: Option<QueueName> },
    /// What is known of one
    Show {
        queue: QueueName,
        #[arg(value_parser = fingerprint)]
        fingerprint: Fingerprint,
    },
    /// Close a fingerprint to enqueue and claim; makes the queue if need be
    Add {
        queue: QueueName,
        #[arg(value_parser = fingerprint)]
        fingerprint: Fingerprint,
        /// For the next one who looks
        #[arg(long, value_name = "T", allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Open a fingerprint and put its jobs back
    Release {
        queue: QueueName,
        #[arg(value_parser = fingerprint)]
        fingerprint: Fingerprint,
    },
}

fn fingerprint(text: &str) -> Result<Fingerprint, StoreError> {
    Fingerprint::new(text)
}

#[derive(Serialize)]
struct Entry<'a> {
    queue: &'a str,
    fingerprint: &'a str,
    quarantined_at: u64,
    crashes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_id: Option<&'a str>,
    /// Who held that job.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Added<'a> {
    queue: &'a str,
    fingerprint: &'a str,
    changed: bool,
}

#[derive(Serialize)]
struct Opened<'a> {
    queue: &'a str,
    fingerprint: &'a str,
    released: u64,
    archived: u64,
}

pub(crate) async fn quarantine(global: &Global, verb: Verb) -> Result<ExitCode, Failure> {
    let inspector = connect::inspector(global)?;
    match verb {
        Verb::List { queue: Some(queue) } => {
            // A queue that is named is all that there is to tell of.
            let listed = inspector.quarantines(&queue).await?;
            tell(global, &[(queue, listed)]).map(|()| ExitCode::SUCCESS)
        }
        Verb::List { queue: None } => list(global, &inspector).await,
        verb => one(global, &inspector, verb).await.map(|()| ExitCode::SUCCESS),
    }
}

/// Of all queues. One that is damaged hides no other.
async fn list(global: &Global, inspector: &Inspector) -> Result<ExitCode, Failure> {
    let (mut listed, mut damaged) = (Vec::new(), Vec::new());
    for (queue, found) in inspector.each_queue().await? {
        let listing = match found {
            // It was repeated, in vain, with those of all others.
            Err(error @ StoreError::Unavailable(_)) => Err(error),
            _ => inspector.quarantines(&queue).await,
        };
        match listing {
            Ok(entries) => listed.push((queue, entries)),
            Err(error) => damaged.push((queue, error)),
        }
    }
    fail::unless_all_are_away(listed.len(), &damaged)?;
    tell(global, &listed)?;
    Ok(fail::damaged(&damaged, global.json))
}

fn tell(global: &Global, listed: &[(QueueName, Vec<Quarantine>)]) -> Result<(), Failure> {
    let entries = listed
        .iter()
        .flat_map(|(queue, entries)| entries.iter().map(|entry| Entry::of(queue.as_str(), entry)));
    if global.json {
        return entries.into_iter().try_for_each(|entry| out::object(&entry));
    }
    let rows: Vec<_> = entries.map(|entry| entry.row()).collect();
    if rows.is_empty() {
        out::talk(global, "nothing is in quarantine");
        return Ok(());
    }
    out::table(["queue", "fingerprint", "since", "crashes", "worker", "reason"], rows)
}

async fn one(global: &Global, inspector: &Inspector, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::List { .. } => Ok(()),
        Verb::Show { queue, fingerprint } => {
            let one = inspector.quarantined(&queue, fingerprint).await?;
            let entry = Entry::of(queue.as_str(), &one);
            if global.json { out::object(&entry) } else { entry.pairs() }
        }
        Verb::Add { queue, fingerprint, reason } => {
            let change = inspector.quarantine(&queue, fingerprint, reason.as_deref()).await?;
            let changed = change == Change::Changed;
            if global.json {
                let (queue, fingerprint) = (queue.as_str(), fingerprint.as_str());
                return out::object(&Added { queue, fingerprint, changed });
            }
            let how = if changed { "quarantined" } else { "unchanged: it was quarantined before" };
            out::talk(global, &format!("{fingerprint}: {how}"));
            Ok(())
        }
        Verb::Release { queue, fingerprint } => {
            let done = inspector.release(&queue, fingerprint).await?;
            if global.json {
                let (queue, fingerprint) = (queue.as_str(), fingerprint.as_str());
                let (released, archived) = (done.released, done.archived);
                return out::object(&Opened { queue, fingerprint, released, archived });
            }
            let archived = match done.archived {
                0 => String::new(),
                n => format!(", {n} archived, for other jobs hold their unique keys now"),
            };
            out::talk(global, &format!("{fingerprint}: {} pending again{archived}", done.released));
            Ok(())
        }
    }
}

impl<'a> Entry<'a> {
    fn of(queue: &'a str, one: &'a Quarantine) -> Self {
        Self {
            queue,
            fingerprint: one.fingerprint.as_str(),
            quarantined_at: one.since.as_millis(),
            crashes: one.crashes,
            sample_id: one.sample_id.as_ref().map(sprag::JobId::as_str),
            worker: one.worker.as_ref().map(sprag::WorkerId::as_str),
            reason: one.reason.as_deref(),
        }
    }

    fn since(&self) -> String {
        units::shown(sprag::Timestamp::from_millis(self.quarantined_at))
    }

    fn row(&self) -> [String; 6] {
        let told = |text: Option<&str>| text.unwrap_or("-").to_owned();
        let (queue, fingerprint) = (self.queue.to_owned(), self.fingerprint.to_owned());
        let crashes = self.crashes.to_string();
        [queue, fingerprint, self.since(), crashes, told(self.worker), told(self.reason)]
    }

    fn pairs(&self) -> Result<(), Failure> {
        let [queue, fingerprint, since, crashes, worker, reason] = self.row();
        out::pairs(vec![
            ("queue", queue),
            ("fingerprint", fingerprint),
            ("since", since),
            ("crashes", crashes),
            ("sample id", self.sample_id.unwrap_or("-").to_owned()),
            ("worker", worker),
            ("reason", reason),
        ])
    }
}
