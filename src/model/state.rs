//! The eight states of a job.

use std::fmt;

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident $text:literal $word:literal,)*) => {
        /// Where a job is. In Redis a job's state is the key in which its id stands.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum State { $($(#[$doc])* $name,)* }

        impl State {
            /// All states, unfinished ones first.
            pub const ALL: [State; 8] = [$(State::$name),*];

            /// The name used in keys, in the CLI and in metrics.
            pub fn as_str(self) -> &'static str {
                match self { $(State::$name => $text),* }
            }

            /// The word by which scripts answer this state.
            pub(crate) fn word(self) -> &'static str {
                match self { $(State::$name => $word),* }
            }
        }
    };
}

states! {
    /// Due later.
    Scheduled "scheduled" "SCHEDULED",
    /// Ready to run.
    Pending "pending" "PENDING",
    /// Held by a worker under a lease.
    Active "active" "ACTIVE",
    /// Failed, due again later.
    Retry "retry" "RETRY",
    /// Done, kept for its retention.
    Completed "completed" "COMPLETED",
    /// Given up, kept for its retention.
    Archived "archived" "ARCHIVED",
    /// Stopped by an operator, kept for its retention.
    Cancelled "cancelled" "CANCELLED",
    /// Its fingerprint killed workers.
    Quarantined "quarantined" "QUARANTINED",
}

impl State {
    /// Pending, scheduled, active or retry: what backpressure counts.
    pub fn is_unfinished(self) -> bool {
        matches!(self, Self::Scheduled | Self::Pending | Self::Active | Self::Retry)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for State {
    type Err = super::StoreError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        State::ALL.into_iter().find(|s| s.as_str() == text).ok_or_else(|| {
            let names = State::ALL.map(State::as_str).join(", ");
            super::StoreError::invalid("state", super::error::quoted(text.as_bytes()), &names)
        })
    }
}
