//! Who works: what workers say of themselves.

use crate::model::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A worker says so often that it is there.
pub(crate) const BEAT: Duration = Duration::from_secs(5);
/// Not heard of for so long, it is gone.
pub(crate) const GONE_AFTER: Duration = Duration::from_secs(60);
/// And not heard of for so long, it is forgotten.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);

/// Of so many of its jobs a worker tells, at most.
pub(crate) const MAX_LISTED: usize = 100;

/// What a worker does with new jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// It claims them.
    #[default]
    Running,
    /// It claims nothing more, and stays.
    Quiet,
    /// It claims nothing more, and ends with the jobs that it runs.
    Stopping,
}

impl WorkerState {
    /// The name used in the CLI.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Quiet => "quiet",
            Self::Stopping => "stopping",
        }
    }
}

/// A job that a worker runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningJob {
    /// Its queue.
    pub queue: String,
    /// The job.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// Which attempt this is, from 0.
    pub attempt: u32,
    /// When this attempt started, by the worker's clock.
    pub started_at: Timestamp,
}

/// A worker, as it said at its last beat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// Who it is: unique per start.
    pub id: String,
    /// The queues that it serves.
    pub queues: Vec<String>,
    /// The machine's name.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// The version of this library.
    pub version: String,
    /// Jobs that it runs at a time, at most.
    pub concurrency: usize,
    /// Jobs that it holds.
    pub busy: usize,
    /// Whether it claims.
    #[serde(default)]
    pub state: WorkerState,
    /// Jobs that it runs, the oldest first, at most 100 of them.
    #[serde(default)]
    pub jobs: Vec<RunningJob>,
    /// When it started, by its own machine's clock.
    pub started_at: Timestamp,
    /// When it was last heard of, by the store's clock: what [`beat`](super::Store::beat) is given
    /// here does not count.
    pub seen_at: Timestamp,
    /// Not heard of for 60 s: dead, or cut off.
    #[serde(default, skip_serializing)]
    pub gone: bool,
}

impl WorkerInfo {
    /// What is kept of a beat.
    pub(crate) fn heard(&self, now: Timestamp) -> Self {
        let mut info = Self { seen_at: now, ..self.clone() };
        info.jobs.truncate(MAX_LISTED);
        info
    }

    /// Looks at the time. None: it is to be forgotten.
    pub(crate) fn seen(mut self, now: Timestamp) -> Option<Self> {
        self.gone = self.seen_at + GONE_AFTER <= now;
        (self.seen_at + FORGOTTEN_AFTER > now).then_some(self)
    }
}
