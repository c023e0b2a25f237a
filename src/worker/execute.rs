//! One job's run: decode → admit → run → judge → settle.

use super::{
    Context, Shared,
    handler::{Said, VerdictKind, chain, verdict},
    settle::{Settlement, Unsettled},
};
use crate::{
    model::QueueName,
    store::{Archive, ArchiveReason, Claimed, Complete, Held, Retry, Snooze},
};
use futures_util::FutureExt;
use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// A job with so many crashes is suspected of having killed its workers.
const SUSPECT_CRASHES: u32 = 2;
/// A suspect that would run beside another waits about so long.
const SUSPECT_SNOOZE: Duration = Duration::from_secs(2);
/// A job of a kind without a handler here waits about so long for a worker that has one.
const NO_HANDLER_SNOOZE: Duration = Duration::from_secs(5);

/// Runs one job and hands its settlement on. The slot is free as soon as that is taken.
pub(super) async fn execute(
    shared: Arc<Shared>,
    queue: QueueName,
    claimed: Claimed,
    cancelled: CancellationToken,
    slot: OwnedSemaphorePermit,
) {
    let held = Held { id: claimed.id.clone(), fence: claimed.fence };
    let settlement = run(&shared, &queue, &held, claimed, cancelled).await;
    // The receiver outlives all runs.
    let _ = shared.unsettled.send(Unsettled { queue, held, settlement }).await;
    drop(slot);
}

async fn run(
    shared: &Shared,
    queue: &QueueName,
    held: &Held,
    claimed: Claimed,
    cancelled: CancellationToken,
) -> Settlement {
    let (envelope, enqueued_at) = (claimed.envelope.clone(), claimed.enqueued_at);
    let Some(handler) = shared.handlers.get(envelope.kind()) else {
        tracing::warn!(%queue, job_id = %held.id, kind = %envelope.kind(), "no handler; snoozed");
        return snooze(held, about(NO_HANDLER_SNOOZE));
    };
    // Suspects run apart, one at a time: a poison job drags at most one other suspect along.
    let Some(_alone) = admit(shared, claimed.crash) else {
        tracing::info!(%queue, job_id = %held.id, "runs apart from other suspects; snoozed");
        return snooze(held, about(SUSPECT_SNOOZE));
    };
    let timeout = envelope.timeout();
    let context = Context::new(&claimed, envelope, enqueued_at, cancelled.clone());
    let attempt = claimed.attempt + 1;
    // Even making the future may panic: it decodes the user's type.
    let running = AssertUnwindSafe(async { handler(claimed, context).await }).catch_unwind();
    let said = tokio::select! {
        said = within(timeout, running) => said,
        () = shared.abort.cancelled() => return Settlement::Requeue(held.clone()),
    };
    judge(shared, queue, held, attempt, said, &cancelled)
}

/// Lets a job run: at once, or, if it is a suspect, only when no other suspect does.
fn admit(shared: &Shared, crash: u32) -> Option<Option<SemaphorePermit<'_>>> {
    if crash < SUSPECT_CRASHES {
        return Some(None);
    }
    shared.suspects.try_acquire().ok().map(Some)
}

fn about(delay: Duration) -> Duration {
    delay.mul_f64(0.8 + 0.4 * fastrand::f64())
}

type Ran = Result<Said, Box<dyn Any + Send>>;

/// The attempt, ended at its timeout: what it still awaits is dropped.
async fn within(timeout: Option<Duration>, running: impl Future<Output = Ran>) -> Ran {
    let Some(timeout) = timeout else { return running.await };
    tokio::time::timeout(timeout, running)
        .await
        .unwrap_or_else(|_| Ok(Said::Failed(format!("timed out after {timeout:?}").into())))
}

fn judge(
    shared: &Shared,
    queue: &QueueName,
    held: &Held,
    attempt: u32,
    said: Ran,
    cancelled: &CancellationToken,
) -> Settlement {
    let error = match said {
        Ok(Said::Done(result)) => {
            return Settlement::Complete(Complete { held: held.clone(), result });
        }
        Ok(Said::Undecodable(why)) => return undecodable(held, why),
        Ok(Said::Failed(error)) => error,
        Err(panic) => format!("panicked: {}", panic_text(&*panic)).into(),
    };
    // A handler that was told to stop has not failed by itself: no attempt is spent.
    if cancelled.is_cancelled() {
        return Settlement::Requeue(held.clone());
    }
    let text = chain(&*error);
    tracing::warn!(%queue, job_id = %held.id, attempt, error = %text, "attempt failed");
    match verdict(&*error) {
        Some(VerdictKind::Snooze(delay)) => snooze(held, delay),
        Some(VerdictKind::Discard) => archive(held, ArchiveReason::Discarded, text),
        Some(VerdictKind::RetryIn(delay)) => retry(held, delay, text),
        None => retry(held, (shared.backoff)(attempt), text),
    }
}

fn undecodable(held: &Held, why: String) -> Settlement {
    archive(held, ArchiveReason::Undecodable, why)
}

fn archive(held: &Held, reason: ArchiveReason, error: String) -> Settlement {
    Settlement::Archive(Archive { held: held.clone(), reason, error: Some(error) })
}

fn snooze(held: &Held, delay: Duration) -> Settlement {
    Settlement::Snooze(Snooze { held: held.clone(), delay: in_bounds(delay) })
}

fn retry(held: &Held, delay: Duration, error: String) -> Settlement {
    Settlement::Retry(Retry { held: held.clone(), delay: in_bounds(delay), error })
}

/// A handler's delay must not keep its job from settling: rounded up to whole ms, within bounds.
fn in_bounds(delay: Duration) -> Duration {
    let millis = delay.as_nanos().div_ceil(1_000_000).max(1);
    let most = crate::model::MAX_DURATION;
    u64::try_from(millis).map_or(most, |millis| Duration::from_millis(millis).min(most))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("with a value that is no text")
}

/// The usual wait after a failed attempt: 15 s + attempt⁴ s, at most a day, ± 15 %. The shape is
/// Sidekiq's: 25 attempts last about three weeks.
pub fn backoff(attempt: u32) -> Duration {
    let seconds = (15.0 + f64::from(attempt.saturating_sub(1)).powi(4)).min(86_400.0);
    Duration::from_secs_f64(seconds * (0.85 + 0.3 * fastrand::f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_is_capped_and_in_bounds() {
        for (attempt, least, most) in [(1, 12.7, 17.3), (3, 26.3, 35.7), (900, 73_000.0, 99_400.0)]
        {
            let seconds = backoff(attempt).as_secs_f64();
            assert!((least..=most).contains(&seconds), "{attempt}: {seconds}");
        }
        assert_eq!(in_bounds(Duration::ZERO), Duration::from_millis(1));
        assert_eq!(in_bounds(Duration::from_micros(1_001)), Duration::from_millis(2));
        assert_eq!(in_bounds(Duration::MAX), crate::model::MAX_DURATION);
    }
}
