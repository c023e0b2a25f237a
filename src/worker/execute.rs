//! One job's run: admit → run → judge → settle.

use super::{
    CancelReason, Context, Shared,
    attempt::{Limits, Ran, attempt, panic_text},
    backoff::{Exponential, about, in_bounds},
    handler::{Entry, VerdictKind, chain, verdict},
    meters::{self, Meter},
    settle::{Settlement, Unsettled},
};
use crate::{
    model::When,
    store::{Archive, ArchiveReason, Complete, Held, Retry, Snooze},
    trace::TraceParent,
};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit};
use tower::ServiceExt;
use tracing::Instrument;

/// A job with so many crashes is suspected of having killed its workers.
const SUSPECT_CRASHES: u32 = 2;
/// A suspect that would run beside another waits about so long.
const SUSPECT_SNOOZE: Duration = Duration::from_secs(2);
/// A job of a kind without a handler here waits about so long for a worker that has one.
const NO_HANDLER_SNOOZE: Duration = Duration::from_secs(5);

/// Runs one job and hands its settlement on. The slot is free as soon as that is taken.
pub(super) async fn execute(shared: Arc<Shared>, context: Context, slot: OwnedSemaphorePermit) {
    let unsettled = run(&shared, context).await;
    // The receiver outlives all runs.
    let _ = shared.unsettled.send(unsettled).await;
    drop(slot);
}

/// Runs one job. Answers what is to be told to the store.
pub(super) async fn run(shared: &Shared, context: Context) -> Unsettled {
    let Some(entry) = shared.handlers.get(context.kind()) else {
        return unhandled(context, "no handler for this kind");
    };
    let meter = shared.meters.of(context.queue(), &entry.label);
    // Suspects run apart, one at a time: a poison job drags at most one other suspect along.
    let Some(_alone) = admit(shared, context.crash()) else {
        tracing::info!(queue = %context.queue(), job_id = %context.id(),
            "runs apart from other suspects; snoozed");
        let settlement = snooze(held(&context), about(SUSPECT_SNOOZE));
        return Unsettled { context, settlement, meter: Some(meter) };
    };
    let ran = attempt_at(shared, &context, entry, &meter).await;
    if let Some(reason) = context.cancel_reason() {
        meters::cancelled(context.queue(), reason);
    }
    // It calls code of others: back-offs, and what errors say of themselves.
    let judged = catch_unwind(AssertUnwindSafe(|| judge(shared, &context, entry, ran)));
    match judged.unwrap_or_else(|panic| Some(unjudged(&context, &*panic))) {
        Some(settlement) => Unsettled { context, settlement, meter: Some(meter) },
        None => unhandled(context, "its payload is of a later version"),
    }
}

/// Lets a job run: at once, or, if it is a suspect, only when no other suspect does.
fn admit(shared: &Shared, crash: u32) -> Option<Option<SemaphorePermit<'_>>> {
    if crash < SUSPECT_CRASHES {
        return Some(None);
    }
    shared.suspects.try_acquire().ok().map(Some)
}

async fn attempt_at(shared: &Shared, context: &Context, entry: &Entry, meter: &Meter) -> Ran {
    let envelope = context.envelope();
    let due_at = match envelope.run_at() {
        When::At(due) => due.max(context.enqueued_at()),
        _ => context.enqueued_at(),
    };
    meter.waited(context.claimed_at().since(due_at));
    let limits = Limits {
        timeout: envelope.timeout().or(shared.timeout),
        deadline: match envelope.deadline() {
            Some(When::At(deadline)) => Some(deadline.since(context.claimed_at())),
            _ => None,
        },
        grace: shared.cancel_grace,
    };
    let span = tracing::info_span!(target: "sprag::job", "job", queue = %context.queue(), kind = %context.kind(),
        job_id = %context.id(), attempt = context.attempt() + 1, fence = %context.fence(),
        traceparent = context.traceparent().map(tracing::field::display));
    let handler = entry.run.clone().oneshot(context.clone());
    let handler = TraceParent::scope(context.traceparent(), handler).instrument(span);
    meter.running.increment(1);
    let started = Instant::now();
    let ran = attempt(handler, context.cancellation(), limits, &shared.shutdown).await;
    meter.ran(started.elapsed());
    meter.running.decrement(1);
    ran
}

/// What the attempt means for the job. None: it is not this worker's.
fn judge(shared: &Shared, context: &Context, entry: &Entry, ran: Ran) -> Option<Settlement> {
    let held = held(context);
    let stopped = context.cancel_reason();
    let error = match ran {
        Ran::Said(Ok(answer)) => {
            return Some(Settlement::Complete(Complete { held, result: answer.0 }));
        }
        Ran::Said(Err(error)) => error,
        Ran::Panicked(text) => format!("panicked: {text}").into(),
        Ran::GivenUp { reason, runaway: false } => format!("given up: {reason}").into(),
        Ran::GivenUp { reason, runaway: true } => {
            tracing::error!(queue = %context.queue(), kind = %context.kind(), job_id = %held.id,
                %reason, "a handler does not stop; it is given up and occupies a thread");
            shared.report().runaways += 1;
            format!("given up: {reason}; it does not stop").into()
        }
    };
    let mut text = chain(&error);
    match stopped {
        // It has not failed by itself: no attempt is spent.
        Some(CancelReason::LeaseLost | CancelReason::Operator | CancelReason::Shutdown) => {
            return Some(Settlement::Requeue(held));
        }
        Some(CancelReason::Timeout) => {
            let timeout = context.envelope().timeout().or(shared.timeout).unwrap_or_default();
            text = format!("timed out after {timeout:?}: {text}");
        }
        Some(CancelReason::Deadline) => text = format!("its deadline has passed: {text}"),
        None => {}
    }
    let attempt = context.attempt() + 1;
    let usual = || (entry.backoff)(attempt).unwrap_or_else(|| (shared.backoff)(attempt));
    let settlement = match verdict(&error) {
        Some(VerdictKind::Unhandled) => return None,
        Some(VerdictKind::Snooze(delay)) => snooze(held, delay),
        Some(VerdictKind::Discard) => archive(held, ArchiveReason::Discarded, text),
        Some(VerdictKind::Undecodable) => archive(held, ArchiveReason::Undecodable, text),
        Some(VerdictKind::RetryIn(delay)) => retry(held, delay, text),
        None => retry(held, usual(), text),
    };
    if let Some(error) = settlement.error() {
        tracing::warn!(queue = %context.queue(), kind = %context.kind(), job_id = %context.id(),
            attempt, error, "attempt failed");
    }
    Some(settlement)
}

/// A back-off or an error's own text panicked: a failed attempt, tried again after the usual time.
fn unjudged(context: &Context, panic: &(dyn Any + Send)) -> Settlement {
    let text = format!("panicked after the attempt: {}", panic_text(panic));
    tracing::error!(queue = %context.queue(), kind = %context.kind(), job_id = %context.id(),
        error = text, "its back-off or its error panicked");
    retry(held(context), Exponential::default().after(context.attempt() + 1), text)
}

/// Another worker may know it: snoozed, no attempt spent.
fn unhandled(context: Context, why: &str) -> Unsettled {
    tracing::warn!(queue = %context.queue(), job_id = %context.id(), kind = %context.kind(), why,
        "not handled here; snoozed for a worker that knows it");
    meters::unhandled(context.queue());
    let settlement = snooze(held(&context), about(NO_HANDLER_SNOOZE));
    Unsettled { context, settlement, meter: None }
}

fn held(context: &Context) -> Held {
    Held { id: context.id().clone(), fence: context.fence() }
}

fn archive(held: Held, reason: ArchiveReason, error: String) -> Settlement {
    Settlement::Archive(Archive { held, reason, error: Some(error) })
}

fn snooze(held: Held, delay: Duration) -> Settlement {
    Settlement::Snooze(Snooze { held, delay: in_bounds(delay) })
}

fn retry(held: Held, delay: Duration, error: String) -> Settlement {
    Settlement::Retry(Retry { held, delay: in_bounds(delay), error })
}
