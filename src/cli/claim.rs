//! `sprag claim`.

use crate::{args::Global, connect, fail::Failure, out, payload::Shown, units};
use serde::Serialize;
use sprag::{
    Envelope, QueueName, Store, WorkerId,
    model::MAX_BATCH,
    store::{Claimed, JobInfo},
};
use std::{collections::BTreeMap, time::Duration};

/// Take jobs to run; settle each with its fence before its lease ends
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
    loop {
        let left = args.count - jobs.len();
        let claim = store.claim(&args.queue, &args.worker, left, args.lease).await?;
        jobs.extend(claim.jobs);
        if !claim.more || jobs.len() >= args.count {
            break;
        }
    }
    if global.json {
        return jobs.iter().try_for_each(|job| out::object(&Answer::of(&args.queue, job)));
    }
    if jobs.is_empty() {
        out::talk(global, "nothing to claim");
        return Ok(());
    }
    out::table(["id", "fence", "kind", "payload"], jobs.iter().map(row).collect())
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
            envelope: EnvelopeFields::of(&job.envelope, job.enqueued_at.as_millis()),
            payload: Shown::of(&job.envelope),
        }
    }
}

/// What was enqueued, as `claim` and `job show` tell it.
#[derive(Serialize)]
pub(crate) struct EnvelopeFields<'a> {
    kind: &'a str,
    codec: &'static str,
    version: u32,
    enqueued_at: u64,
    priority: u8,
    max_attempts: u32,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<UniqueFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct UniqueFields {
    /// None: the payload is the key.
    key: Option<String>,
    any_kind: bool,
}

impl<'a> EnvelopeFields<'a> {
    pub(crate) fn of(job: &'a Envelope, enqueued_at: u64) -> Self {
        Self {
            kind: job.kind().as_str(),
            codec: job.codec().as_str(),
            version: job.version(),
            enqueued_at,
            priority: job.priority(),
            max_attempts: job.max_attempts(),
            fingerprint: job.fingerprint().to_string(),
            timeout_ms: job.timeout().map(units::millis),
            retention_ms: job.retention().map(units::millis),
            unique: job.unique().map(|unique| UniqueFields {
                key: unique.given_key().map(|key| String::from_utf8_lossy(key).into_owned()),
                any_kind: unique.is_any_kind(),
            }),
            partition: job.partition().map(sprag::Partition::as_str),
            headers: job.headers(),
        }
    }

    pub(crate) fn kind(&self) -> &str {
        self.kind
    }

    pub(crate) fn enqueued_at(&self) -> u64 {
        self.enqueued_at
    }

    pub(crate) fn of_shown(job: &'a JobInfo) -> Option<Self> {
        let (envelope, at) = job.envelope.as_ref().ok()?;
        Some(Self::of(envelope, at.as_millis()))
    }
}
