//! `sprag claim`.

use crate::{
    args::Global, connect, envelope::EnvelopeFields, fail::Failure, out, payload::Shown, units,
};
use serde::Serialize;
use serde_json::json;
use sprag::{
    QueueName, RedisStore, Store, WorkerId,
    model::MAX_BATCH,
    store::{Claimed, Held},
};
use std::time::Duration;

/// Take jobs to run; settle each with its fence before its lease ends
///
/// Jobs that cannot be written to stdout, because nobody reads on or the disk is full, are put
/// back; stderr says how many.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    queue: QueueName,
    /// Who you are: unique per start
    #[arg(long, value_name = "W")]
    worker: WorkerId,
    /// At most so many, 1 to 1000
    #[arg(long, value_name = "N", value_parser = units::whole::<usize>(1..=MAX_BATCH as u64), default_value = "1", allow_hyphen_values = true)]
    count: usize,
    /// How long they are yours without a word from you
    #[arg(long, value_name = "DUR", value_parser = units::lease, default_value = "30s", allow_hyphen_values = true)]
    lease: Duration,
}

pub(crate) async fn claim(global: &Global, args: Args) -> Result<(), Failure> {
    let store = connect::store(global)?;
    let mut jobs = Vec::new();
    let end = take(&store, &args, &mut jobs).await;
    let (written, told) = tell(global, &args.queue, &jobs);
    if let Err(failure) = told {
        let back = put_back(&store, &args.queue, &jobs[written..]).await;
        return Err(back.say(global, failure));
    }
    if jobs.is_empty() && end.is_ok() {
        out::talk(global, "nothing to claim");
    }
    // What was claimed before a call failed is handed out all the same.
    end
}

async fn take(store: &RedisStore, args: &Args, jobs: &mut Vec<Claimed>) -> Result<(), Failure> {
    loop {
        let left = args.count - jobs.len();
        let claim = store.claim(&args.queue, &args.worker, left, args.lease).await?;
        jobs.extend(claim.jobs);
        if !claim.more || jobs.len() >= args.count {
            return Ok(());
        }
    }
}

/// Writes the jobs, and tells how many are known to be written.
fn tell(global: &Global, queue: &QueueName, jobs: &[Claimed]) -> (usize, Result<(), Failure>) {
    if global.json {
        for (written, job) in jobs.iter().enumerate() {
            if let Err(failure) = out::object(&Answer::of(queue, job)) {
                return (written, Err(failure));
            }
        }
        return (jobs.len(), Ok(()));
    }
    if jobs.is_empty() {
        return (0, Ok(()));
    }
    // Of a table it cannot be told which rows got through: who has read one is rejected by its fence.
    let header = ["id", "fence", "kind", "payload"];
    (0, out::table(header, jobs.iter().map(row).collect()))
}

/// What became of jobs that could not be handed out.
struct PutBack {
    requeued: usize,
    /// Not put back, for the store did not take them: held until their lease ends.
    held: usize,
}

async fn put_back(store: &RedisStore, queue: &QueueName, jobs: &[Claimed]) -> PutBack {
    let held: Vec<_> =
        jobs.iter().map(|job| Held { id: job.id.clone(), fence: job.fence }).collect();
    let outcomes = match &*held {
        [] => Vec::new(),
        held => store.requeue(queue, held).await.unwrap_or_default(),
    };
    let requeued = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    PutBack { requeued, held: jobs.len() - requeued }
}

impl PutBack {
    /// With the error that there is; a pipe that nobody reads is none.
    fn say(&self, global: &Global, why: Failure) -> Failure {
        let Self { requeued, held } = self;
        let mut text = format!("{requeued} jobs could not be printed and were put back");
        if *held > 0 {
            text += &format!("; {held} could not be put back and are held until their lease ends");
        }
        match why {
            Failure::Other(_) => return why.although(text),
            _ if global.json => {
                let warning = json!({ "warning": text, "requeued": requeued, "held": held });
                out::warn(&warning.to_string());
            }
            _ => out::warn(&format!("sprag: {text}")),
        }
        why
    }
}

fn row(job: &Claimed) -> [String; 4] {
    let (kind, payload) = (job.envelope.kind().to_string(), Shown::of(&job.envelope));
    [job.id.to_string(), job.fence.to_string(), kind, out::cut(payload.text(), 60)]
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    queue: &'a str,
    fence: u64,
    attempt: u32,
    crash: u32,
    lease_expires_at: u64,
    #[serde(flatten)]
    envelope: EnvelopeFields<'a>,
    #[serde(flatten)]
    payload: Shown,
}

impl<'a> Answer<'a> {
    fn of(queue: &'a QueueName, job: &'a Claimed) -> Self {
        Self {
            id: job.id.as_str(),
            queue: queue.as_str(),
            fence: job.fence.0,
            attempt: job.attempt,
            crash: job.crash,
            lease_expires_at: job.lease_expires_at.as_millis(),
            envelope: EnvelopeFields::of(&job.envelope, job.enqueued_at),
            payload: Shown::of(&job.envelope),
        }
    }
}
