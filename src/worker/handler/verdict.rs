//! What a handler's error says about the job's future.

use super::BoxError;
use std::{error::Error, fmt, time::Duration};

/// What a handler's error says about the job's future, when it is not simply to be tried again. It
/// counts wherever it stands in the chain of causes: inside `anyhow::Error`, behind a `#[from]`.
///
/// ```
/// # use sprag::Verdict;
/// fn charge(card: Option<u64>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     card.ok_or_else(|| Verdict::discard("the customer has no card any more"))?;
///     Ok(())
/// }
/// # assert!(charge(None).is_err());
/// ```
#[derive(Debug)]
pub struct Verdict {
    kind: VerdictKind,
    error: String,
}

/// Stands at the end of a verdict's chain of causes, where it is found whatever wraps the verdict:
/// some wrappers hide the type of what they wrap, none hides its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum VerdictKind {
    RetryIn(Duration),
    Discard,
    Snooze(Duration),
    Undecodable,
    /// This worker does not know such jobs; another one may.
    Unhandled,
}

impl Verdict {
    /// A failed attempt; the next one so much later instead of after the usual back-off. Rounded up to
    /// whole ms, 1 ms to 10 years.
    pub fn retry_in(delay: Duration, error: impl fmt::Display) -> Self {
        Self { kind: VerdictKind::RetryIn(delay), error: error.to_string() }
    }

    /// Trying again is of no use: the job is archived as `discarded`.
    pub fn discard(error: impl fmt::Display) -> Self {
        Self { kind: VerdictKind::Discard, error: error.to_string() }
    }

    /// The payload makes no sense: the job is archived as `undecodable`.
    pub fn undecodable(error: impl fmt::Display) -> Self {
        Self { kind: VerdictKind::Undecodable, error: error.to_string() }
    }

    /// Not a failure: run the job again so much later, rounded as by
    /// [`retry_in`](Verdict::retry_in). No attempt is counted.
    pub fn snooze(delay: Duration) -> Self {
        Self { kind: VerdictKind::Snooze(delay), error: format!("snoozed for {delay:?}") }
    }

    /// This worker has no handler for the job: snoozed for another one that has.
    pub(super) fn unhandled(why: impl fmt::Display) -> Self {
        Self { kind: VerdictKind::Unhandled, error: why.to_string() }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl Error for Verdict {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.kind)
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Error for VerdictKind {}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// An error and all that caused it, on one line.
pub(in crate::worker) fn chain(error: &BoxError) -> String {
    let said = causes(&**error).filter(|cause| !cause.is::<VerdictKind>());
    said.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The verdict in an error, wherever it stands in its chain of causes.
pub(in crate::worker) fn verdict(error: &BoxError) -> Option<VerdictKind> {
    causes(&**error).find_map(|cause| cause.downcast_ref::<VerdictKind>()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error("while sending")]
        Sending(#[from] Verdict),
        #[error(transparent)]
        Other(BoxError),
    }

    #[test]
    fn a_verdict_counts_wherever_it_stands_and_says_itself_once() {
        let gone = || Verdict::discard("gone");
        let behind = Wrapped::from(gone());
        let inside = Wrapped::Other(gone().into());
        for (error, text) in [
            (BoxError::from(gone()), "gone"),
            (behind.into(), "while sending: gone"),
            (inside.into(), "gone"),
        ] {
            assert_eq!(verdict(&error), Some(VerdictKind::Discard), "{text}");
            assert_eq!(chain(&error), text);
        }
        assert_eq!(verdict(&std::fmt::Error.into()), None);
    }
}
