//! A worker: runs deliveries, and writes down where each run starts and ends.

use super::{
    deliveries::{Delivery, Email, MAX_ATTEMPTS, QUEUES, Report, Webhook},
    journal::{Journal, RAN, Ran, Step},
    processes,
};
use crate::{args::Global, connect, fail::Failure};
use serde::Serialize;
use sprag::{Client, Context, StoreError, Timestamp, Verdict, Worker};
use std::{error::Error, path::Path, sync::Arc, time::Duration};

/// Short, so that the killed worker's jobs are back soon; extended all the time while they run.
const LEASE: Duration = Duration::from_secs(1);
/// Jobs that a worker runs at a time.
const CONCURRENCY: usize = 8;

/// What a delivery results in.
#[derive(Serialize)]
struct Receipt {
    status: u16,
}

pub(super) async fn run(global: &Global, dir: &Path) -> Result<(), Failure> {
    let client = connect::client(global)?;
    let worker = on(&client, Arc::new(Journal::open(dir, RAN)?))?;
    let shutdown = worker.shutdown();
    processes::end_with_parent(move || shutdown.drain());
    worker.run_until_shutdown().await;
    Ok(())
}

/// A worker for all deliveries.
pub(super) fn on(client: &Client, journal: Arc<Journal>) -> Result<Worker, StoreError> {
    let handler = |journal: &Arc<Journal>| {
        let journal = journal.clone();
        move |delivery, context| deliver(journal.clone(), delivery, context)
    };
    let (webhook, email, report) = (handler(&journal), handler(&journal), handler(&journal));
    let mut worker = Worker::builder(client)
        .handler(move |job: Webhook, context: Context| webhook(job.0, context))
        .handler(move |job: Email, context: Context| email(job.0, context))
        .handler(move |job: Report, context: Context| report(job.0, context))
        .concurrency(CONCURRENCY)
        .lease(LEASE)
        .grace(Duration::from_secs(1))
        .backoff(|attempt| Duration::from_millis(250 << attempt.min(6)));
    for (queue, weight) in QUEUES {
        worker = worker.weighted_queue(queue, weight);
    }
    worker.build()
}

/// Pretends to call the receiver.
async fn deliver(
    journal: Arc<Journal>,
    delivery: Delivery,
    context: Context,
) -> Result<Receipt, Box<dyn Error + Send + Sync>> {
    let note = |step| journal.write(&note(&context, step));
    note(Step::Start)?;
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(delivery.takes_ms)) => {}
        _ = context.cancelled() => {
            note(Step::Stopped)?;
            return Err("told to stop".into());
        }
    }
    if delivery.gone {
        note(Step::GivenUp)?;
        return Err(Verdict::discard("410 Gone").into());
    }
    if context.attempt() < delivery.fails {
        let last = context.attempt() + 1 == MAX_ATTEMPTS;
        note(if last { Step::GivenUp } else { Step::Failed })?;
        return Err("503 Service Unavailable".into());
    }
    note(Step::Done)?;
    Ok(Receipt { status: 200 })
}

fn note(context: &Context, step: Step) -> Ran {
    Ran {
        queue: context.queue().to_string(),
        id: context.id().to_string(),
        step,
        attempt: context.attempt(),
        crash: context.crash(),
        fence: context.fence().0,
        pid: std::process::id(),
        at: Timestamp::now().as_millis(),
    }
}
