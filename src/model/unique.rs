//! Unique keys: at most one job holds one.

use super::{error::StoreError, time::checked};
use std::time::Duration;

/// A unique key and how long it is held.
///
/// One key space per queue; a key belongs to its kind unless [`any_kind`](Unique::any_kind).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    pub(crate) key: Key,
    pub(crate) mode: Mode,
    pub(crate) any_kind: bool,
    pub(crate) replace: Vec<Replace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Given(Vec<u8>),
    Payload,
}

/// How long a unique key is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Until the job is finished.
    Lifecycle,
    /// For a window after the enqueue, whatever becomes of the job.
    Throttle {
        /// How long.
        window: Duration,
    },
    /// Until the first claim. The job is due `window` after its last event: each duplicate replaces
    /// the payload and, while the job is not yet pending, postpones it.
    Debounce {
        /// How long after the last event the job is due.
        window: Duration,
        /// At most so long after the first event.
        max_wait: Option<Duration>,
    },
}

/// A field that a duplicate may write into a holder that is not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// The payload.
    Payload,
    /// When the job is due.
    RunAt,
    /// The priority.
    Priority,
    /// The number of attempts.
    MaxAttempts,
}

impl Unique {
    /// A key of 1 to 256 bytes, held until the job is finished.
    pub fn key(key: impl AsRef<[u8]>) -> Self {
        Self::held_by(Key::Given(key.as_ref().to_vec()))
    }

    /// The job's fingerprint is its key: at most one unfinished job per payload.
    pub fn by_payload() -> Self {
        Self::held_by(Key::Payload)
    }

    fn held_by(key: Key) -> Self {
        Self { key, mode: Mode::Lifecycle, any_kind: false, replace: Vec::new() }
    }

    /// Holds the key in another way.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Shares the key between all kinds of the queue.
    pub fn any_kind(mut self) -> Self {
        self.any_kind = true;
        self
    }

    /// What a duplicate writes into a holder that is not running.
    pub fn replace(mut self, fields: impl Into<Vec<Replace>>) -> Self {
        self.replace = fields.into();
        self
    }

    /// The key as it was given; none if it is the job's fingerprint.
    pub fn given_key(&self) -> Option<&[u8]> {
        match &self.key {
            Key::Given(key) => Some(key),
            Key::Payload => None,
        }
    }

    /// Whether all kinds of the queue share the key.
    pub fn is_any_kind(&self) -> bool {
        self.any_kind
    }

    /// How long the key is held.
    pub fn held(&self) -> Mode {
        self.mode
    }

    /// The fields that a duplicate replaces.
    pub fn replaces(&self) -> &[Replace] {
        &self.replace
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if let Key::Given(key) = &self.key
            && !(1..=256).contains(&key.len())
        {
            let bytes = format!("{} bytes", key.len());
            return Err(StoreError::invalid("unique key", bytes, "1 to 256 bytes"));
        }
        match self.mode {
            Mode::Lifecycle => Ok(()),
            Mode::Throttle { window } => checked("throttle", window).map(drop),
            Mode::Debounce { window, max_wait } => {
                checked("debounce", window)?;
                max_wait.map_or(Ok(()), |wait| checked("max_wait", wait).map(drop))
            }
        }
    }
}

impl Replace {
    /// The field's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::RunAt => "run_at",
            Self::Priority => "priority",
            Self::MaxAttempts => "max_attempts",
        }
    }
}
