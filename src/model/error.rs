//! The one error that a store answers with.

/// What a store refuses or cannot do. The nine variants are fixed: match on them.
///
/// `Duplicate` is a normal answer to an enqueue with a unique key; see
/// [`OrJoin`](crate::OrJoin) for turning it into the winner's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The unique key is held by another job.
    #[error("the unique key is held by job {existing_id}")]
    Duplicate {
        /// The job that holds the key: join it instead.
        existing_id: String,
        /// The fields asked for were written into the holder, which is not running.
        replaced: bool,
    },
    /// The caller's own id already names a job in this queue whose content differs.
    #[error("job id {job_id} already names a job with another kind or payload: choose another id")]
    IdConflict {
        /// The id that is taken.
        job_id: String,
    },
    /// The fingerprint of this kind and payload is quarantined.
    #[error("fingerprint {fingerprint} is quarantined: an operator must release it")]
    Quarantined {
        /// 32 lowercase hex digits.
        fingerprint: String,
    },
    /// `current + incoming` would exceed the queue's limit of unfinished jobs.
    #[error("queue {queue} is full: {current} unfinished + {incoming} incoming > limit {limit}")]
    Backpressure {
        /// The queue that is full.
        queue: String,
        /// The limit in force, in unfinished jobs.
        limit: u64,
        /// Unfinished jobs at the moment of the refusal.
        current: u64,
        /// Jobs that the call would have added.
        incoming: u64,
    },
    /// The caller does not hold this job (any more): stop it at once.
    #[error("job {job_id} is not held under this fence: stop it at once")]
    LeaseRejected {
        /// The job that is not held.
        job_id: String,
    },
    /// The store cannot be reached or cannot serve now. The call may have been applied, unless it
    /// [`wrote_nothing`](Self::wrote_nothing).
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// No such job, queue, worker or fingerprint.
    #[error("not found: {0}")]
    NotFound(String),
    /// Refused: a bound, or a state that forbids the verb. Nothing was written.
    #[error("invalid {0}")]
    Invalid(String),
    /// Anything else: wrong type, no permission, unknown answer, server too old.
    #[error("backend: {0}")]
    Backend(String),
}

/// How the texts of calls end that were certainly not applied.
const NOTHING_WRITTEN: &str = "; nothing was written";
/// How those end that were applied, and then not found to be as durable as was asked.
const AGAIN: &str = "; the same call again is safe";

impl StoreError {
    /// Says that the call was certainly not applied.
    pub(crate) fn nothing_written(self) -> Self {
        self.with_text(|text| format!("{text}{NOTHING_WRITTEN}"))
    }

    /// Says what there is, though not as it was to be.
    pub(crate) fn although(self, what: &str) -> Self {
        self.with_text(|text| format!("{what}, but {text}{AGAIN}"))
    }

    /// Adds to an `Unavailable` or `Backend` of an enqueue what is known of these jobs, `job 7`.
    pub(crate) fn of_enqueue(self, jobs: &str) -> Self {
        self.with_text(|text| match text.ends_with(NOTHING_WRITTEN) || text.ends_with(AGAIN) {
            true => text,
            false => format!("{text}; {jobs} may have been enqueued"),
        })
    }

    /// Whether the call certainly changed nothing: it was refused, or never got as far as the store. Of
    /// other failures it is not known; the same enqueue with an id or a unique key finds out.
    ///
    /// ```
    /// use sprag::StoreError;
    /// assert!(StoreError::Invalid("kind: …".into()).wrote_nothing());
    /// assert!(!StoreError::Unavailable("no answer in time".into()).wrote_nothing());
    /// ```
    pub fn wrote_nothing(&self) -> bool {
        match self {
            Self::Unavailable(text) | Self::Backend(text) => text.ends_with(NOTHING_WRITTEN),
            Self::Duplicate { replaced, .. } => !replaced,
            _ => true,
        }
    }

    fn with_text(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Unavailable(text) => Self::Unavailable(change(text)),
            Self::Backend(text) => Self::Backend(change(text)),
            other => other,
        }
    }

    /// An `Invalid` that names field, value and bound.
    pub(crate) fn invalid(field: &str, value: impl std::fmt::Display, bound: &str) -> Self {
        Self::Invalid(format!("{field}: {value}; must be {bound}"))
    }
}

/// A user's text made fit for an error message: quoted, escaped, and cut at 64 characters.
pub(crate) fn quoted(text: &[u8]) -> String {
    let shown = String::from_utf8_lossy(text);
    let cut: String = shown.chars().take(64).collect();
    let dots = if cut.len() < shown.len() { "…" } else { "" };
    format!("{cut:?}{dots} ({} bytes)", text.len())
}
