//! Handlers: which function runs which kind, and what its answer means.

use super::Context;
use crate::{Job, job, model::Kind, store::Claimed};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::{collections::HashMap, error::Error, fmt, future::Future, sync::Arc, time::Duration};

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
pub(super) enum VerdictKind {
    RetryIn(Duration),
    Discard,
    Snooze(Duration),
}

impl Verdict {
    /// A failed attempt; the next one so much later instead of after the usual back-off.
    pub fn retry_in(delay: Duration, error: impl fmt::Display) -> Self {
        Self { kind: VerdictKind::RetryIn(delay), error: error.to_string() }
    }

    /// Trying again is of no use: the job is archived.
    pub fn discard(error: impl fmt::Display) -> Self {
        Self { kind: VerdictKind::Discard, error: error.to_string() }
    }

    /// Not a failure: run the job again so much later. No attempt is counted.
    pub fn snooze(delay: Duration) -> Self {
        Self { kind: VerdictKind::Snooze(delay), error: format!("snoozed for {delay:?}") }
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

/// What a handler said, before it is judged.
pub(super) enum Said {
    Done(Option<Bytes>),
    Failed(Box<dyn Error + Send + Sync>),
    Undecodable(String),
}

type Run = dyn Fn(Claimed, Context) -> BoxFuture<'static, Said> + Send + Sync;

/// The handlers of a worker, by kind.
#[derive(Default, Clone)]
pub(super) struct Handlers(HashMap<Kind, Arc<Run>>);

impl Handlers {
    pub(super) fn insert<J, F, Fut, R, E>(&mut self, kind: Kind, handler: F)
    where
        J: Job,
        F: Fn(J, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: serde::Serialize,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let run = move |claimed: Claimed, context: Context| -> BoxFuture<'static, Said> {
            let envelope = claimed.envelope;
            let job = match job::decode::<J>(envelope.codec(), envelope.payload()) {
                Ok(job) => job,
                Err(why) => return Box::pin(std::future::ready(Said::Undecodable(why))),
            };
            let keeps_result = envelope.retention().is_some();
            let running = handler(job, context);
            Box::pin(async move { said(running.await, keeps_result) })
        };
        self.0.insert(kind, Arc::new(run));
    }

    pub(super) fn get(&self, kind: &Kind) -> Option<&Arc<Run>> {
        self.0.get(kind)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A result is worth encoding only if it is kept; one that cannot be encoded is the handler's error.
fn said<R: serde::Serialize, E: Into<Box<dyn Error + Send + Sync>>>(
    answer: Result<R, E>,
    keeps_result: bool,
) -> Said {
    match answer {
        Ok(_) if !keeps_result => Said::Done(None),
        Ok(result) => match serde_json::to_vec(&result) {
            // A handler that returns () has no result.
            Ok(json) if json == b"null" => Said::Done(None),
            Ok(json) => Said::Done(Some(json.into())),
            Err(error) => Said::Failed(format!("its result cannot be encoded: {error}").into()),
        },
        Err(error) => Said::Failed(error.into()),
    }
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// An error and all that caused it, on one line.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let said = causes(error).filter(|cause| !cause.is::<VerdictKind>());
    said.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The verdict in an error, wherever it stands in its chain of causes.
pub(super) fn verdict(error: &(dyn Error + 'static)) -> Option<VerdictKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<VerdictKind>()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error("while sending")]
        Sending(#[from] Verdict),
        #[error(transparent)]
        Other(Box<dyn Error + Send + Sync>),
    }

    #[test]
    fn a_verdict_counts_wherever_it_stands_and_says_itself_once() {
        let gone = || Verdict::discard("gone");
        let behind = Wrapped::from(gone());
        let inside = Wrapped::Other(gone().into());
        for (error, text) in [
            (Box::<dyn Error + Send + Sync>::from(gone()), "gone"),
            (behind.into(), "while sending: gone"),
            (inside.into(), "gone"),
        ] {
            assert_eq!(verdict(&*error), Some(VerdictKind::Discard), "{text}");
            assert_eq!(chain(&*error), text);
        }
        assert_eq!(verdict(&std::fmt::Error), None);
    }
}
