//! Telling a handler to stop, and why.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};
use tokio_util::sync::CancellationToken;

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The job may be another worker's by now: what this one still does counts for nothing.
    LeaseLost,
    /// An operator cancelled or archived the job.
    Operator,
    /// The attempt has taken its time.
    Timeout,
    /// The job's deadline has passed.
    Deadline,
    /// The worker ends, and its grace is over.
    Shutdown,
}

impl CancelReason {
    /// The name used in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LeaseLost => "lease_lost",
            Self::Operator => "operator",
            Self::Timeout => "timeout",
            Self::Deadline => "deadline",
            Self::Shutdown => "shutdown",
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One per run. The first reason is the one that counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Cancellation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    token: CancellationToken,
    reason: OnceLock<CancelReason>,
}

impl Cancellation {
    /// Tells the handler to stop, unless it was told before.
    pub(super) fn cancel(&self, reason: CancelReason) {
        if self.0.reason.set(reason).is_ok() {
            self.0.token.cancel();
        }
    }

    pub(super) fn reason(&self) -> Option<CancelReason> {
        self.0.reason.get().copied()
    }

    pub(super) fn token(&self) -> &CancellationToken {
        &self.0.token
    }

    /// Resolves once the handler is told to stop.
    pub(super) async fn cancelled(&self) -> CancelReason {
        self.0.token.cancelled().await;
        // The reason is set before the token; whoever cancels the token itself means to stop it.
        self.reason().unwrap_or(CancelReason::Shutdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_counts() {
        let run = Cancellation::default();
        assert_eq!(run.reason(), None);
        run.cancel(CancelReason::Timeout);
        run.cancel(CancelReason::Shutdown);
        assert_eq!(run.cancelled().await, CancelReason::Timeout);
    }
}
