//! The data: what a shop's systems want delivered, and the job types that carry it.

use crate::fail::Failure;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use sprag::{Codec, Job, QueueName, StoreError, Unique};
use std::time::Duration;

/// Made by scripts/demo-deliveries.
const FILE: &str = include_str!("deliveries.jsonl");
/// A delivery that fails this often is archived.
pub(super) const MAX_ATTEMPTS: u32 = 4;
/// The queues, and the share of a worker that each has while all have jobs.
pub(super) const QUEUES: [(&str, u32); 3] = [("webhooks", 6), ("emails", 3), ("reports", 1)];

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Delivery {
    pub(super) id: String,
    pub(super) queue: String,
    event: String,
    to: String,
    /// How long the receiver takes.
    pub(super) takes_ms: u64,
    /// How often the receiver fails before it accepts.
    #[serde(default)]
    pub(super) fails: u32,
    /// The receiver says that it wants nothing more.
    #[serde(default)]
    pub(super) gone: bool,
    /// Due so much later.
    #[serde(default)]
    pub(super) delay_ms: u64,
    body: serde_json::Value,
}

impl Delivery {
    /// All lines, in order.
    pub(super) fn all() -> Result<Vec<Self>, Failure> {
        let read = |(i, line)| {
            serde_json::from_str(line).with_context(|| format!("deliveries.jsonl, line {}", i + 1))
        };
        let all: anyhow::Result<Vec<Self>> = FILE.lines().enumerate().map(read).collect();
        Ok(all?)
    }
}

/// A queue's name.
pub(super) fn queue(name: &str) -> Result<QueueName, StoreError> {
    QueueName::new(name)
}

macro_rules! jobs {
    ($($name:ident $queue:literal $kind:literal)*) => {$(
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub(super) struct $name(pub(super) Delivery);

        impl Job for $name {
            const KIND: &'static str = $kind;
            const QUEUE: &'static str = $queue;
            // Readable by redis-cli, with which the tour looks at it.
            const CODEC: Codec = Codec::Json;
            const MAX_ATTEMPTS: u32 = MAX_ATTEMPTS;
            // The check looks at jobs that are completed.
            const RETENTION: Option<Duration> = Some(Duration::from_secs(3_600));

            /// A sender that got no answer repeats its event: it is delivered once.
            fn unique(&self) -> Option<Unique> {
                Some(Unique::key(&self.0.id))
            }
        }
    )*};
}

jobs! {
    Webhook "webhooks" "webhook:deliver"
    Email "emails" "email:send"
    Report "reports" "report:build"
}
