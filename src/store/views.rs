//! What a store tells about jobs and queues.

use super::settle::ArchiveReason;
use crate::{
    Undecodable,
    model::{Envelope, Fence, Fingerprint, JobId, State, Timestamp, WorkerId},
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A job was admitted, or was there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    /// The job.
    pub id: JobId,
    /// Where it is; none if the record is gone and only its identity is remembered.
    pub state: Option<State>,
    /// It was there before this call, which wrote nothing.
    pub existing: bool,
}

/// What a claim handed over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// The jobs, in the order in which they are to run.
    pub jobs: Vec<Claimed>,
    /// Stopped at a bound with work left: call again at once.
    pub more: bool,
    /// Jobs that it met and that are not to run any more, in the order in which it met them. Told
    /// at most once: the repeat of a claim whose answer was lost does not tell them again.
    pub ended: Vec<Ended>,
}

/// A job that ended in nobody's hands: a claim met it, or a sweep found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The job.
    pub id: JobId,
    /// Where it is: archived or quarantined.
    pub state: State,
    /// Why.
    pub reason: EndingReason,
}

impl Ended {
    pub(crate) fn of(id: JobId, reason: EndingReason) -> Self {
        let state = match reason {
            EndingReason::Quarantined => State::Quarantined,
            _ => State::Archived,
        };
        Self { id, state, reason }
    }
}

/// A job in its holder's hands, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The job.
    pub id: JobId,
    /// The fence of this claim.
    pub fence: Fence,
    /// Failures that handlers reported before.
    pub attempt: u32,
    /// Times that a holder vanished before.
    pub crash: u32,
    /// When the lease ends, by the store's clock.
    pub lease_expires_at: Timestamp,
    /// What was enqueued. A claim hands over no job that cannot be decoded.
    pub envelope: Envelope,
    /// When, by the store's clock.
    pub enqueued_at: Timestamp,
}

/// What a sweep did, and what it saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Jobs that became due.
    pub promoted: u64,
    /// Jobs taken from holders whose lease ran out.
    pub reclaimed: u64,
    /// Jobs that were quarantined with their fingerprint.
    pub quarantined: u64,
    /// Jobs whose deadline passed.
    pub expired: u64,
    /// Finished jobs whose retention was over.
    pub evicted: u64,
    /// The expired and the quarantined jobs. Told at most once: the answer of a sweep may be lost, and
    /// the next one finds them ended.
    pub ended: Vec<Ended>,
    /// Something is ready to be claimed.
    pub claimable: bool,
    /// How long until the next scheduled or retry job is due; none if there is no such job.
    pub next_due: Option<Duration>,
}

impl Swept {
    /// Adds what a later slice did; what that one saw replaces what this one saw.
    pub(crate) fn add(&mut self, later: Self) {
        self.promoted += later.promoted;
        self.reclaimed += later.reclaimed;
        self.quarantined += later.quarantined;
        self.expired += later.expired;
        self.evicted += later.evicted;
        self.ended.extend(later.ended);
        self.claimable = later.claimable;
        self.next_due = later.next_due;
    }
}

/// Whether a verb found something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Done.
    Changed,
    /// The job was in that state already.
    Unchanged,
}

/// Everything known of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobInfo {
    /// The job.
    pub id: JobId,
    /// Where it is.
    pub state: State,
    /// What was enqueued and when, or why it cannot be decoded.
    pub envelope: Result<(Envelope, Timestamp), Undecodable>,
    /// Failures that handlers reported.
    pub attempt: u32,
    /// Times that a holder vanished.
    pub crash: u32,
    /// When a scheduled or retry job is due.
    pub due_at: Option<Timestamp>,
    /// Who runs it, if it is active.
    pub holder: Option<Holder>,
    /// What an active job said of its progress: a JSON text.
    pub progress: Option<String>,
    /// The last failures, oldest first.
    pub errors: Vec<Failure>,
    /// The result of a completed job: a JSON text.
    pub result: Option<Bytes>,
    /// How a finished job ended.
    pub ending: Option<Ending>,
    /// When a finished job is evicted.
    pub evicted_at: Option<Timestamp>,
}

/// Who runs a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The worker.
    pub worker: WorkerId,
    /// Its fence.
    pub fence: Fence,
    /// When its lease ends.
    pub lease_expires_at: Timestamp,
}

/// One failure: an attempt that the handler reported, or a crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// When, by the store's clock.
    pub at: Timestamp,
    /// Which attempt it was, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Which crash it was, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<u32>,
    /// Who held the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// What the handler said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Why.
    pub reason: EndingReason,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// Who held it then.
    pub worker: Option<WorkerId>,
}

/// Why a job is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndingReason {
    /// Its handler succeeded.
    Completed,
    /// Its handler succeeded; its result was too large to be kept.
    CompletedWithoutResult,
    /// It failed as often as it may.
    Exhausted,
    /// Its handler gave it up.
    Discarded,
    /// It cannot be decoded.
    Undecodable,
    /// Its deadline passed.
    Expired,
    /// Its fingerprint is quarantined.
    Quarantined,
    /// Released from quarantine, it found its unique key held by another job.
    UniqueKeyTaken,
    /// An operator ended it.
    Operator,
}

impl From<ArchiveReason> for EndingReason {
    fn from(reason: ArchiveReason) -> Self {
        match reason {
            ArchiveReason::Discarded => Self::Discarded,
            ArchiveReason::Undecodable => Self::Undecodable,
        }
    }
}

impl EndingReason {
    pub(crate) const ALL: [Self; 9] = [
        Self::Completed,
        Self::CompletedWithoutResult,
        Self::Exhausted,
        Self::Discarded,
        Self::Undecodable,
        Self::Expired,
        Self::Quarantined,
        Self::UniqueKeyTaken,
        Self::Operator,
    ];

    /// The name used in keys and by the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::CompletedWithoutResult => "completed_without_result",
            Self::Exhausted => "exhausted",
            Self::Discarded => "discarded",
            Self::Undecodable => "undecodable",
            Self::Expired => "expired",
            Self::Quarantined => "quarantined",
            Self::UniqueKeyTaken => "unique_key_taken",
            Self::Operator => "operator",
        }
    }
}

/// A queue's counters. All are exact at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueInfo {
    /// The queue.
    pub queue: String,
    /// Jobs ready to run.
    pub pending: u64,
    /// Jobs due later.
    pub scheduled: u64,
    /// Jobs held by workers.
    pub active: u64,
    /// Failed jobs, due again later.
    pub retry: u64,
    /// Done jobs that are kept.
    pub completed: u64,
    /// Given-up jobs that are kept.
    pub archived: u64,
    /// Stopped jobs that are kept.
    pub cancelled: u64,
    /// Jobs whose fingerprint is quarantined.
    pub quarantined: u64,
    /// What backpressure judges: pending + scheduled + active + retry.
    pub unfinished: u64,
    /// The limit of unfinished jobs.
    pub limit: Option<u64>,
    /// Nothing is claimed.
    pub paused: bool,
    /// How long the job that is next in its lane has waited since it was due, at most. On Redis, what
    /// stands behind more than 5,000 entries of jobs that left their lane may not be seen.
    pub oldest_pending_ms: Option<u64>,
    /// Jobs completed on this day (UTC).
    pub completed_today: u64,
    /// Attempts that failed on this day (UTC).
    pub failed_today: u64,
}

/// A job in a listing: what is known without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The job.
    pub id: JobId,
    /// What was enqueued and when, the payload left out; or why it cannot be decoded.
    pub envelope: Result<(Envelope, Timestamp), Undecodable>,
    /// Scheduled, retry: when it is due. Active: when its lease ends. Finished: when it is evicted.
    pub at: Option<Timestamp>,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The jobs; may be fewer than asked for, or none, with a cursor.
    pub jobs: Vec<Listed>,
    /// Where the next page begins; none at the end.
    pub cursor: Option<String>,
}

/// A fingerprint in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// The fingerprint.
    pub fingerprint: Fingerprint,
    /// Since when, by the store's clock.
    pub since: Timestamp,
    /// Crashes that were counted; 0 if an operator put it here.
    pub crashes: u32,
    /// The job whose crash was the last one.
    pub sample_id: Option<JobId>,
    /// Who held that job.
    pub worker: Option<WorkerId>,
    /// An operator's reason; or, of one that crashed too often, that it did.
    pub reason: Option<String>,
}

impl Quarantine {
    /// A fingerprint that reached its crash limit says so: `3 crashes within 24h; last worker w:1`.
    pub(crate) fn for_crashes(mut self, window: Option<Duration>) -> Self {
        let crashes = match self.crashes {
            1 => "1 crash".to_owned(),
            crashes => format!("{crashes} crashes"),
        };
        let within = window.map(|window| format!(" within {}", in_whole_units(window)));
        let worker = self.worker.as_ref().map(|worker| format!("; last worker {worker}"));
        let told = [Some(crashes), within, worker].into_iter().flatten();
        self.reason = Some(told.collect());
        self
    }
}

/// In the largest unit of which it is a whole number.
fn in_whole_units(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let unit = units.into_iter().find(|(unit, _)| ms.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ms}ms"), |(unit, name)| format!("{}{name}", ms / unit))
}

/// What a release did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Released {
    /// Jobs that are pending again.
    pub released: u64,
    /// Jobs archived because another job holds their unique key now.
    pub archived: u64,
}

/// A queue's counters of one day (UTC).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Day {
    /// `yyyy-mm-dd`.
    pub day: String,
    /// Jobs completed.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Jobs reclaimed from holders that vanished.
    pub crashed: u64,
    /// Jobs whose deadline passed.
    pub expired: u64,
    /// Jobs put into quarantine.
    pub quarantined: u64,
}
