//! The shorter tour, where there is no Redis: one process, the store in its memory. It says what it
//! leaves out, and checks what it shows id by id as the long one does.

use super::{
    deliveries::{Delivery, QUEUES, queue},
    journal::Journal,
    producer, worker,
};
use crate::{args::Global, fail::Failure, out};
use anyhow::anyhow;
use sprag::{
    Client, JobId, QueueName, State, StoreError,
    store::{EndingReason, Setting},
};
use std::{collections::BTreeSet, path::Path, process::ExitCode, sync::Arc, time::Duration};

/// Deliveries of the file that are run.
const DELIVERIES: usize = 300;
/// Unfinished webhooks beyond this are refused: low enough that the producer meets it.
const LIMIT: u64 = 50;

pub(super) async fn tour(global: &Global, dir: &Path) -> Result<ExitCode, Failure> {
    out::talk(
        global,
        &format!(
            "There is no Redis, so this is a shorter tour: {DELIVERIES} deliveries, one process, the\n\
             store in its memory. Left out: other processes, kill -9, leases that run out, and\n\
             the keys that redis-cli would show."
        ),
    );
    let client = Client::connect("memory://")?;
    client.store().set(&queue("webhooks")?, &[Setting::Limit(Some(LIMIT))]).await?;
    let worker = worker::on(&client, Arc::new(Journal::open(dir, super::journal::RAN)?))?;
    let shutdown = worker.shutdown();
    let working = tokio::spawn(worker.run_until_shutdown());
    let told = enqueue_all(&client).await?;
    until_drained(&client).await?;
    shutdown.drain();
    let report = working.await.map_err(|error| anyhow!(error))?;
    let counts = Counts::of(&client, &told).await?;
    out::line("")?;
    out::table(
        ["", ""],
        [
            ("deliveries", DELIVERIES as u64),
            ("enqueued", told.ids.len() as u64),
            ("joined as duplicates", told.joined),
            ("completed", counts.completed),
            ("archived", counts.archived),
            ("retried", report.retried),
            ("refused by backpressure", told.refused),
            ("lost", counts.lost),
        ]
        .map(|(name, count)| [name.to_owned(), count.to_string()])
        .to_vec(),
    )?;
    Ok(if counts.lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the producer was told.
#[derive(Default)]
struct Told {
    ids: BTreeSet<(QueueName, JobId)>,
    joined: u64,
    refused: u64,
}

async fn enqueue_all(client: &Client) -> Result<Told, Failure> {
    let mut told = Told::default();
    for delivery in Delivery::all()?.into_iter().take(DELIVERIES) {
        let to = queue(&delivery.queue)?;
        loop {
            match producer::enqueue(client, delivery.clone())?.await {
                Ok(done) => drop(told.ids.insert((to, done.id))),
                Err(StoreError::Duplicate { .. }) => told.joined += 1,
                Err(StoreError::Backpressure { .. }) => {
                    told.refused += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            break;
        }
    }
    Ok(told)
}

async fn until_drained(client: &Client) -> Result<(), Failure> {
    for (name, _) in QUEUES {
        loop {
            match client.store().queue(&queue(name)?).await {
                Ok(info) if info.unfinished > 0 => {}
                Ok(_) | Err(StoreError::NotFound(_)) => break,
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// What the store says of each job that the producer was told of.
#[derive(Default)]
struct Counts {
    completed: u64,
    archived: u64,
    lost: u64,
}

impl Counts {
    async fn of(client: &Client, told: &Told) -> Result<Self, Failure> {
        let mut counts = Self::default();
        for (queue, id) in &told.ids {
            let job = client.store().show(queue, id).await?;
            let reason = job.ending.map(|ending| ending.reason);
            match (job.state, reason) {
                (State::Completed, _) => counts.completed += 1,
                (State::Archived, Some(EndingReason::Exhausted | EndingReason::Discarded)) => {
                    counts.archived += 1;
                }
                _ => counts.lost += 1,
            }
        }
        Ok(counts)
    }
}
