//! What a handler knows of the job it runs.

use crate::{
    model::{Envelope, Fence, JobId, QueueName, Timestamp},
    store::Claimed,
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What a handler knows of the job it runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    envelope: Envelope,
    enqueued_at: Timestamp,
    fence: Fence,
    attempt: u32,
    crash: u32,
    cancelled: CancellationToken,
}

impl Context {
    pub(super) fn new(
        claimed: &Claimed,
        envelope: Envelope,
        enqueued_at: Timestamp,
        cancelled: CancellationToken,
    ) -> Self {
        let Claimed { fence, attempt, crash, .. } = *claimed;
        Self(Arc::new(Inner { envelope, enqueued_at, fence, attempt, crash, cancelled }))
    }

    /// The job's id.
    pub fn id(&self) -> &JobId {
        self.0.envelope.id()
    }

    /// The queue it came from.
    pub fn queue(&self) -> &QueueName {
        self.0.envelope.queue()
    }

    /// All that was enqueued: headers, priority, partition and the rest.
    pub fn envelope(&self) -> &Envelope {
        &self.0.envelope
    }

    /// When it was enqueued, by the store's clock.
    pub fn enqueued_at(&self) -> Timestamp {
        self.0.enqueued_at
    }

    /// The fence: hand it on to the systems written to, so that they can refuse a stale writer.
    pub fn fence(&self) -> Fence {
        self.0.fence
    }

    /// Failures that handlers reported before: 0 on the first run.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Times that a worker vanished with this job before.
    pub fn crash(&self) -> u32 {
        self.0.crash
    }

    /// Resolves when the handler should stop: its lease is lost, or the worker shuts down.
    pub async fn cancelled(&self) {
        self.0.cancelled.cancelled().await;
    }

    /// The same as a flag, for loops that do not await.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.is_cancelled()
    }
}
