//! Handlers: which function runs which kind, and what its answer means.

use super::Context;
use crate::{Job, job, model::Kind, store::Claimed};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::{collections::HashMap, error::Error, fmt, future::Future, sync::Arc, time::Duration};

/// What a handler's error says about the job's future, when it is not simply to be tried again.
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
    pub(super) kind: VerdictKind,
    error: String,
}

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

impl Error for Verdict {}

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
            let Ok((envelope, _)) = claimed.envelope else {
                let said = Said::Undecodable("the record cannot be decoded".into());
                return Box::pin(std::future::ready(said));
            };
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

/// An error and all that caused it, on one line.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let causes =
        std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
