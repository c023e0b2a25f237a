//! What a handler knows of the job it runs.

use super::{
    CancelReason, Shutdown,
    cancel::Cancellation,
    handler::DataMap,
    progress::{Progress, Reporter},
};
use crate::{
    Client,
    model::{Envelope, Fence, JobId, Kind, QueueName, Timestamp, millis},
    store::Claimed,
    trace::{self, TraceParent},
};
use std::{sync::Arc, time::Duration};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// What a handler knows of the job it runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    claimed: Claimed,
    claimed_at: Timestamp,
    cancellation: Cancellation,
    progress: Reporter,
    /// Where the handler runs.
    runtime: Handle,
    /// The span of this run, if the job belongs to a trace.
    span: Option<TraceParent>,
    surroundings: Arc<Surroundings>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.claimed.id)
            .field("fence", &self.claimed.fence)
            .finish_non_exhaustive()
    }
}

/// What all handlers of a worker share.
pub(super) struct Surroundings {
    pub(super) client: Client,
    pub(super) data: DataMap,
    pub(super) shutdown: Shutdown,
}

impl Context {
    pub(super) fn new(claimed: Claimed, lease: Duration, surroundings: Arc<Surroundings>) -> Self {
        let claimed_at = Timestamp::from_millis(
            claimed.lease_expires_at.as_millis().saturating_sub(millis(lease)),
        );
        let parent = claimed.envelope.headers().get(trace::HEADER);
        let span = parent.and_then(|parent| parent.parse::<TraceParent>().ok());
        let span = span.map(|parent| parent.child());
        let (cancellation, progress) = (Cancellation::default(), Reporter::default());
        let runtime = Handle::current();
        Self(Arc::new(Inner {
            claimed,
            claimed_at,
            cancellation,
            progress,
            runtime,
            span,
            surroundings,
        }))
    }

    /// The job's id.
    pub fn id(&self) -> &JobId {
        &self.0.claimed.id
    }

    /// The queue it came from.
    pub fn queue(&self) -> &QueueName {
        self.envelope().queue()
    }

    /// The type name under which it was enqueued.
    pub fn kind(&self) -> &Kind {
        self.envelope().kind()
    }

    /// All that was enqueued: payload, headers, priority, partition and the rest.
    pub fn envelope(&self) -> &Envelope {
        &self.0.claimed.envelope
    }

    /// When it was enqueued, by the store's clock.
    pub fn enqueued_at(&self) -> Timestamp {
        self.0.claimed.enqueued_at
    }

    /// When it was claimed, by the store's clock.
    pub fn claimed_at(&self) -> Timestamp {
        self.0.claimed_at
    }

    /// The fence: hand it on to the systems written to, so that they can refuse a stale writer.
    pub fn fence(&self) -> Fence {
        self.0.claimed.fence
    }

    /// Failures that handlers reported before: 0 on the first run.
    pub fn attempt(&self) -> u32 {
        self.0.claimed.attempt
    }

    /// Times that a worker vanished with this job before.
    pub fn crash(&self) -> u32 {
        self.0.claimed.crash
    }

    /// Resolves when the handler should stop, with the reason. Cancel-safe. A handler that goes on
    /// is dropped at its next `.await` after the worker's
    /// [`cancel_grace`](super::WorkerBuilder::cancel_grace); whatever it answers then counts for
    /// nothing.
    pub async fn cancelled(&self) -> CancelReason {
        self.0.cancellation.cancelled().await
    }

    /// Why the handler should stop, if it should: for loops that do not await.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.0.cancellation.reason()
    }

    /// Whether the handler should stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel_reason().is_some()
    }

    /// The same as a token, for libraries that take one. Cancelled when the handler should stop.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.0.cancellation.token().child_token()
    }

    /// Says how far the job is: shown by [`Store::show`](crate::Store::show) while it runs. Returns
    /// at once, on any thread; of what is said within half a second the last is kept. `message` is cut at 2 KiB.
    /// If the lease turns out to be lost, the handler is told to stop.
    pub fn progress(&self, current: u64, total: u64, message: impl Into<String>) {
        let progress = Progress { current, total, message: message.into() };
        self.0.progress.report(progress, self);
    }

    /// The client of this worker: enqueues jobs that follow on this one.
    pub fn client(&self) -> &Client {
        &self.0.surroundings.client
    }

    /// Stops the worker that runs this.
    pub fn shutdown(&self) -> &Shutdown {
        &self.0.surroundings.shutdown
    }

    /// The span of this run, a child of the one that enqueued the job; none if the job belongs to no
    /// trace. Jobs enqueued in the handler's task inherit it.
    pub fn traceparent(&self) -> Option<TraceParent> {
        self.0.span
    }

    pub(super) fn data(&self) -> &DataMap {
        &self.0.surroundings.data
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    pub(super) fn reporter(&self) -> &Reporter {
        &self.0.progress
    }

    pub(super) fn cancellation(&self) -> &Cancellation {
        &self.0.cancellation
    }
}
