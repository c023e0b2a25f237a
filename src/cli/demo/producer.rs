//! A producer: enqueues its share of the deliveries and writes down each answer.

use super::{
    deliveries::{Delivery, Email, Report, Webhook},
    journal::{Answer, Journal, TOLD, Told},
    processes::{self, PRODUCERS},
};
use crate::{args::Global, connect, fail::Failure};
use futures_util::{TryStreamExt, stream};
use sprag::{Client, Enqueue, JobId, StoreError, Timestamp};
use std::{path::Path, time::Duration};

/// Calls that a producer has in flight.
const CALLS: usize = 8;

pub(super) async fn run(global: &Global, dir: &Path, share: usize) -> Result<(), Failure> {
    processes::end_with_parent(|| std::process::exit(1));
    let client = connect::client(global)?;
    let journal = Journal::open(dir, TOLD)?;
    let lines = Delivery::all()?.into_iter().enumerate().filter(|(i, _)| i % PRODUCERS == share);
    stream::iter(lines.map(Ok))
        .try_for_each_concurrent(CALLS, |(i, delivery)| deliver(&client, &journal, i + 1, delivery))
        .await
}

/// Enqueues one delivery, waiting for room as long as it takes.
async fn deliver(
    client: &Client,
    journal: &Journal,
    line: usize,
    delivery: Delivery,
) -> Result<(), Failure> {
    // The same id in every try: whatever happens, it is one job.
    let id = JobId::generate();
    loop {
        let call = enqueue(client, delivery.clone())?.id(id.clone());
        let answer = match call.await {
            Ok(job) => Answer::Enqueued(job.id.to_string()),
            Err(StoreError::Duplicate { existing_id, .. }) => Answer::Joined(existing_id),
            Err(StoreError::Backpressure { .. }) => Answer::Refused,
            Err(error) => return Err(error.into()),
        };
        let refused = matches!(answer, Answer::Refused);
        let (queue, at) = (delivery.queue.clone(), Timestamp::now().as_millis());
        journal.write(&Told { line, queue, answer, at })?;
        if !refused {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(fastrand::u64(150..450))).await;
    }
}

pub(super) fn enqueue(client: &Client, delivery: Delivery) -> Result<Enqueue, StoreError> {
    let delay = delivery.delay_ms;
    let call = match delivery.queue.as_str() {
        "webhooks" => client.enqueue(Webhook(delivery)),
        "emails" => client.enqueue(Email(delivery)),
        "reports" => client.enqueue(Report(delivery)),
        other => return Err(StoreError::Invalid(format!("queue: {other}; no job type has it"))),
    };
    Ok(if delay > 0 { call.delay(Duration::from_millis(delay)) } else { call })
}
