//! The keys of a queue: `namespace:{queue}:name`, all in one slot.

use crate::{
    model::{Namespace, QueueName},
    store::Channel,
};
use std::fmt::Write;

/// Every key that a queue may have: the words after its hash tag.
#[cfg(test)]
pub(super) const KEYS: [&str; 35] = [
    "answers",
    "expiry",
    "jobs",
    "meta",
    "wake",
    "active",
    "holder",
    "scheduled",
    "retry",
    "completed",
    "archived",
    "cancelled",
    "quarantined",
    "tries",
    "errors",
    "endings",
    "results",
    "progress",
    "seen",
    "quarantine",
    "crashes",
    "unique",
    "ghosts",
    "stats",
    "clock",
    "pending:0",
    "pending:1",
    "pending:2",
    "pending:3",
    "pending:4",
    "pending:5",
    "pending:6",
    "pending:7",
    "pending:8",
    "pending:9",
];

/// Writes key names without an allocation each.
pub(super) struct KeyWriter {
    text: String,
    prefix: usize,
}

impl KeyWriter {
    pub(super) fn new(namespace: &Namespace, queue: &QueueName) -> Self {
        let mut text = String::with_capacity(64);
        // Writing to a String cannot fail.
        let _ = write!(text, "{namespace}:{{{queue}}}:");
        Self { prefix: text.len(), text }
    }

    pub(super) fn key(&mut self, name: &str) -> &str {
        self.text.truncate(self.prefix);
        self.text.push_str(name);
        &self.text
    }
}

/// The set of the namespace's queues.
pub(super) fn queues(namespace: &Namespace) -> String {
    format!("{namespace}:queues")
}

/// A pattern for the keys of all queues.
pub(super) fn any_queue(namespace: &Namespace) -> String {
    format!("{namespace}:{{*}}:*")
}

/// The version of the namespace's layout.
pub(super) fn schema(namespace: &Namespace) -> String {
    format!("{namespace}:schema")
}

/// The hash of the namespace's workers.
pub(super) fn workers(namespace: &Namespace) -> String {
    format!("{namespace}:workers")
}

/// A channel of the namespace.
pub(super) fn channel(namespace: &Namespace, channel: Channel) -> String {
    format!("{namespace}:{}", channel.as_str())
}
