//! One attempt: a handler in a task of its own, told to stop when its time is over, and given up if it
//! does not.

use super::{
    CancelReason, Shutdown,
    cancel::Cancellation,
    handler::{Answer, BoxError},
    meters,
};
use std::{any::Any, future::Future, time::Duration};
use tokio::{
    task::{JoinError, JoinHandle},
    time::{Instant, sleep, sleep_until, timeout},
};

/// A handler that awaits is dropped within this; one that does not end by then is a runaway.
const DROPPED_WITHIN: Duration = Duration::from_millis(100);

/// How an attempt ended.
pub(super) enum Ran {
    Said(Result<Answer, BoxError>),
    Panicked(String),
    /// Told to stop for this reason, it did not. A runaway goes on all the same.
    GivenUp {
        reason: CancelReason,
        runaway: bool,
    },
}

/// When an attempt is told to stop, whatever happens.
pub(super) struct Limits {
    pub(super) timeout: Option<Duration>,
    /// Until the job's deadline.
    pub(super) deadline: Option<Duration>,
    /// From being told to stop to being dropped.
    pub(super) grace: Duration,
}

impl Limits {
    /// What comes first.
    fn end(&self) -> Option<(Instant, CancelReason)> {
        let now = Instant::now();
        let at = |time: Option<Duration>, reason| Some((now.checked_add(time?)?, reason));
        let timeout = at(self.timeout, CancelReason::Timeout);
        let deadline = at(self.deadline, CancelReason::Deadline);
        timeout.into_iter().chain(deadline).min_by_key(|(at, _)| *at)
    }
}

/// Runs a handler. Once the worker is aborted there is no grace.
pub(super) async fn attempt(
    handler: impl Future<Output = Result<Answer, BoxError>> + Send + 'static,
    cancellation: &Cancellation,
    limits: Limits,
    shutdown: &Shutdown,
) -> Ran {
    let end = limits.end();
    // A task of its own can be left behind: a handler that never awaits cannot be ended.
    let mut task = tokio::spawn(handler);
    let reason = tokio::select! {
        ended = &mut task => return ran(ended),
        reason = cancellation.cancelled() => reason,
        reason = at(end) => {
            cancellation.cancel(reason);
            reason
        }
    };
    tokio::select! {
        ended = &mut task => return ran(ended),
        () = sleep(limits.grace) => {}
        () = shutdown.aborted() => {}
    }
    task.abort();
    match timeout(DROPPED_WITHIN, &mut task).await {
        Ok(Err(ended)) if ended.is_cancelled() => Ran::GivenUp { reason, runaway: false },
        // It came to its end in the last moment.
        Ok(ended) => ran(ended),
        Err(_) => {
            tokio::spawn(count_runaway(task));
            Ran::GivenUp { reason, runaway: true }
        }
    }
}

async fn at(end: Option<(Instant, CancelReason)>) -> CancelReason {
    let Some((at, reason)) = end else { return std::future::pending().await };
    sleep_until(at).await;
    reason
}

fn ran(ended: Result<Result<Answer, BoxError>, JoinError>) -> Ran {
    match ended {
        Ok(said) => Ran::Said(said),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Ran::Panicked(panic_text(&*panic).to_owned()),
            // The runtime is going down: whoever reads this may not be there any more either.
            Err(_) => Ran::GivenUp { reason: CancelReason::Shutdown, runaway: false },
        },
    }
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("with a value that is no text")
}

/// Its answer counts for nothing any more.
async fn count_runaway(task: JoinHandle<Result<Answer, BoxError>>) {
    meters::runaways().increment(1);
    let _ = task.await;
    meters::runaways().decrement(1);
    tracing::warn!(
        "a handler that was given up has come to its end; its answer counts for nothing"
    );
}
