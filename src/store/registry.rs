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
    /// Looks at the time. None: it is to be forgotten.
    pub(crate) fn seen(mut self, now: Timestamp) -> Option<Self> {
        self.gone = self.seen_at + GONE_AFTER <= now;
        (self.seen_at + FORGOTTEN_AFTER > now).then_some(self)
    }
}
