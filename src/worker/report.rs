//! What a worker did in its life.

use super::meters::Outcome;

/// What a worker did in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// Jobs completed.
    pub completed: u64,
    /// Attempts that failed and will be tried again.
    pub retried: u64,
    /// Jobs given up.
    pub archived: u64,
    /// Jobs put off without an attempt spent.
    pub snoozed: u64,
    /// Of those: jobs that no handler here knows.
    pub unhandled: u64,
    /// Jobs put back, at shutdown or because their handler was told to stop.
    pub requeued: u64,
    /// Runs whose settlement was refused or could not be delivered: the job runs again elsewhere.
    pub lost: u64,
    /// Handlers that did not stop when they had to, and were left behind.
    pub runaways: u64,
}

impl Report {
    pub(super) fn count(&mut self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Completed => &mut self.completed,
            Outcome::Retried => &mut self.retried,
            Outcome::Archived => &mut self.archived,
            Outcome::Snoozed => &mut self.snoozed,
            Outcome::Requeued => &mut self.requeued,
            Outcome::Lost => &mut self.lost,
        };
        *counter += 1;
    }

    /// What was done since an earlier report.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            completed: self.completed - earlier.completed,
            retried: self.retried - earlier.retried,
            archived: self.archived - earlier.archived,
            snoozed: self.snoozed - earlier.snoozed,
            unhandled: self.unhandled - earlier.unhandled,
            requeued: self.requeued - earlier.requeued,
            lost: self.lost - earlier.lost,
            runaways: self.runaways - earlier.runaways,
        }
    }
}
