//! What operators say of jobs and queues.

use crate::model::{State, StoreError, checked};
use std::time::Duration;

/// What an operator does to jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Unfinished → cancelled; an active job's fence is superseded.
    Cancel,
    /// Unfinished → archived; an active job's fence is superseded.
    Archive,
    /// Scheduled, retry → pending, at the front.
    Run,
    /// Archived, cancelled, completed → pending at the back, attempts and crashes at zero. A
    /// quarantined fingerprint is `Quarantined`, a unique key held by another `Duplicate`, a deadline
    /// that is past `Invalid`.
    Rerun,
    /// Any but active → gone with all that is known of it, but for a remembered identity.
    Delete,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cancel, Self::Archive, Self::Run, Self::Rerun, Self::Delete];

    /// The verb.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Archive => "archive",
            Self::Run => "run",
            Self::Rerun => "rerun",
            Self::Delete => "delete",
        }
    }

    /// The state in which a job already is what the verb makes of it.
    pub(crate) fn target(self) -> Option<State> {
        match self {
            Self::Cancel => Some(State::Cancelled),
            Self::Archive => Some(State::Archived),
            Self::Run | Self::Rerun => Some(State::Pending),
            Self::Delete => None,
        }
    }

    /// Whether the verb does something in this state.
    pub(crate) fn acts_on(self, state: State) -> bool {
        match self {
            Self::Cancel | Self::Archive => state.is_unfinished(),
            Self::Run => matches!(state, State::Scheduled | State::Retry),
            Self::Rerun => matches!(state, State::Archived | State::Cancelled | State::Completed),
            Self::Delete => state != State::Active,
        }
    }

    /// Whether this is the refusal of a state, and of nothing else about the job.
    pub(crate) fn is_forbidden(error: &StoreError) -> bool {
        matches!(error, StoreError::Invalid(text) if text.starts_with("state: job is "))
    }

    /// The refusal of a state that forbids the verb.
    pub(crate) fn forbidden(self, state: State) -> StoreError {
        let needs = match self {
            Self::Cancel | Self::Archive => "an unfinished job",
            Self::Run => "scheduled or retry",
            Self::Rerun => "archived, cancelled or completed",
            Self::Delete => "any other",
        };
        StoreError::Invalid(format!("state: job is {state}; {} needs {needs}", self.as_str()))
    }
}

/// One setting of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// Unfinished jobs above which enqueue is refused; none: no limit. At most 2^53.
    Limit(Option<u64>),
    /// Nothing is claimed.
    Paused(bool),
    /// How long jobs of a finished state are kept, instead of the default (completed: not at all,
    /// cancelled 7 d, archived and quarantined 90 d). A job's own retention counts instead for
    /// completed ones, and if it is longer for others.
    Retention(State, Option<Duration>),
    /// At most so many archived jobs are kept; sweep evicts the oldest. None: no bound.
    MaxArchived(Option<u64>),
    /// Crashes of a fingerprint within the window that put it into quarantine: 1 to 1,000; default 3.
    CrashLimit(Option<u32>),
    /// Within which crashes of a fingerprint are counted together; default 24 h.
    CrashWindow(Option<Duration>),
}

/// The highest number that Lua holds without loss.
const MAX_NUMBER: u64 = 1 << 53;

impl Setting {
    /// Checks the value.
    pub(crate) fn check(self) -> Result<(), StoreError> {
        match self {
            Self::Limit(Some(number)) if number > MAX_NUMBER => {
                Err(StoreError::invalid("limit", number, "at most 9007199254740992"))
            }
            Self::MaxArchived(Some(number)) if number > MAX_NUMBER => {
                Err(StoreError::invalid("max_archived", number, "at most 9007199254740992"))
            }
            Self::CrashLimit(Some(limit)) if !(1..=1_000).contains(&limit) => {
                Err(StoreError::invalid("crash_limit", limit, "1 to 1000"))
            }
            Self::CrashWindow(Some(window)) => checked("crash_window", window).map(drop),
            Self::Retention(state, _) if state.is_unfinished() => {
                Err(StoreError::invalid("retention", state, "of a finished state"))
            }
            Self::Retention(_, Some(kept)) => checked("retention", kept).map(drop),
            _ => Ok(()),
        }
    }
}
