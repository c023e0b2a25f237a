//! What a holder says of its job.

use crate::model::{Fence, JobId, StoreError, checked};
use bytes::Bytes;
use std::time::Duration;

/// An error text is cut at 4 KiB, with a mark: a job can always settle.
pub const MAX_ERROR: usize = 4 << 10;
/// A larger result is dropped: the job completes without it and says so.
pub const MAX_RESULT: usize = 256 << 10;

/// Ownership of a job: its id and the fence that the claim gave.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    /// The job.
    pub id: JobId,
    /// The fence of the claim.
    pub fence: Fence,
}

/// A job is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complete {
    /// The job.
    pub held: Held,
    /// A JSON text, kept as long as the job is; dropped if it is over [`MAX_RESULT`].
    pub result: Option<Bytes>,
}

/// An attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The job.
    pub held: Held,
    /// When to try again: whole ms, 1 ms to 10 years.
    pub delay: Duration,
    /// What went wrong; cut at [`MAX_ERROR`].
    pub error: String,
}

/// A job is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The job.
    pub held: Held,
    /// Why.
    pub reason: ArchiveReason,
    /// What went wrong; cut at [`MAX_ERROR`].
    pub error: Option<String>,
}

/// Why a holder gives a job up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveReason {
    /// The handler says that trying again is of no use.
    Discarded,
    /// Its payload cannot be decoded.
    Undecodable,
}

/// A job is to run later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snooze {
    /// The job.
    pub held: Held,
    /// How much later: whole ms, 1 ms to 10 years.
    pub delay: Duration,
}

impl Retry {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        checked("delay", self.delay).map(drop)
    }
}

impl Snooze {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        checked("delay", self.delay).map(drop)
    }
}

impl Complete {
    /// The result that is kept, and whether one was dropped for its size.
    pub(crate) fn kept_result(&self) -> (Option<&Bytes>, bool) {
        match &self.result {
            Some(result) if result.len() > MAX_RESULT => (None, true),
            result => (result.as_ref(), false),
        }
    }
}

/// An error text within its bound: cut on a character, with a mark.
pub(crate) fn cut_error(text: &str) -> String {
    const MARK: &str = "… (cut)";
    if text.len() <= MAX_ERROR {
        return text.to_owned();
    }
    let mut end = MAX_ERROR - MARK.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_cut_on_a_character_with_a_mark() {
        assert_eq!(cut_error("short"), "short");
        assert_eq!(cut_error(&"x".repeat(MAX_ERROR)).len(), MAX_ERROR);
        let cut = cut_error(&"ü".repeat(MAX_ERROR));
        assert!(cut.len() <= MAX_ERROR && cut.ends_with("ü… (cut)"), "{}", cut.len());
    }
}
