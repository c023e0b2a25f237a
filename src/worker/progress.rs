//! Progress: said as often as a handler likes, sent twice a second at most.

use super::{CancelReason, Context};
use crate::{model::StoreError, store::Held};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// At least so long between two calls.
const PAUSE: Duration = Duration::from_millis(500);
/// A message is cut to so many bytes: the store takes 4 KiB, and JSON may double what it escapes.
const MAX_MESSAGE: usize = 2 << 10;

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Of `total`.
    pub current: u64,
    /// All there is to do, in the handler's own unit.
    pub total: u64,
    /// For people.
    pub message: String,
}

/// What one run has said and not yet sent.
#[derive(Debug, Default)]
pub(super) struct Reporter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    latest: Option<Progress>,
    /// Somebody sends, and will look for a later one.
    sending: bool,
}

impl Reporter {
    pub(super) fn report(&self, progress: Progress, context: &Context) {
        let mut state = self.lock();
        state.latest = Some(progress);
        if !state.sending {
            state.sending = true;
            // Also from a thread that knows no runtime: a handler may have handed work to a pool.
            context.runtime().spawn(send(context.clone()));
        }
    }

    /// What is to be sent next. None: nobody sends any more.
    fn next(&self) -> Option<Progress> {
        let mut state = self.lock();
        let next = state.latest.take();
        state.sending = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Two fields that are set together: a panic leaves them so.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn send(context: Context) {
    let held = Held { id: context.id().clone(), fence: context.fence() };
    while let Some(progress) = context.reporter().next() {
        let sent = context.client().store().progress(context.queue(), &held, &text(progress)).await;
        match sent {
            Ok(()) => {}
            Err(StoreError::LeaseRejected { .. }) => {
                // Settled meanwhile, or another's.
                context.cancellation().cancel(CancelReason::LeaseLost);
            }
            Err(error) => tracing::warn!(%error, job_id = %held.id, "progress not told"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn text(mut progress: Progress) -> String {
    let mut end = progress.message.len().min(MAX_MESSAGE);
    loop {
        while !progress.message.is_char_boundary(end) {
            end -= 1;
        }
        progress.message.truncate(end);
        let text = serde_json::to_string(&progress).expect("numbers and a text");
        if text.len() <= 2 * MAX_MESSAGE {
            return text;
        }
        end = progress.message.len() / 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_to_what_the_store_takes() {
        for message in ["x".repeat(10_000), "\u{1}".repeat(10_000), "é".repeat(3_000)] {
            let text = text(Progress { current: 1, total: 2, message });
            assert!(text.len() <= 4096, "{}", text.len());
            assert!(serde_json::from_str::<Progress>(&text).is_ok());
        }
    }
}
