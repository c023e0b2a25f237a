//! Unique keys: at most one job holds one.

use super::error::StoreError;
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
    /// For a window after the enqueue, whatever becomes of the job. Not yet supported.
    Throttle {
        /// How long.
        window: Duration,
    },
    /// Until the first claim; each duplicate postpones the job. Not yet supported.
    Debounce {
        /// How long after the last event the job is due.
        window: Duration,
        /// At most so long after the first event.
        max_wait: Option<Duration>,
    },
}

/// A field that a duplicate may write into a holder that is not running. Not yet supported.
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

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.key {
            Key::Given(key) if key.is_empty() || key.len() > 256 => {
                let bytes = format!("{} bytes", key.len());
                Err(StoreError::invalid("unique key", bytes, "1 to 256 bytes"))
            }
            _ => Ok(()),
        }
    }

    /// What only a later layer of the contract gives a meaning to.
    pub(crate) fn check_supported(&self) -> Result<(), StoreError> {
        match self.mode {
            Mode::Throttle { .. } => Err(StoreError::not_yet("throttle")),
            Mode::Debounce { .. } => Err(StoreError::not_yet("debounce")),
            Mode::Lifecycle if self.replace.is_empty() => Ok(()),
            Mode::Lifecycle => Err(StoreError::not_yet("replace")),
        }
    }
}
