//! What the benches share: a server of their own, and what it tells of itself.
#![allow(dead_code, unused_imports, reason = "each bench uses a part of it")]
#![allow(unreachable_pub, reason = "a bench has no outside; `pub` marks what benches call")]

#[path = "../../tests/support/mod.rs"]
mod support;

// What `sprag bench` measures too.
#[path = "../../src/cli/bench/floor.rs"]
mod floor;
#[path = "../../src/cli/bench/probe.rs"]
mod probe;

pub(crate) use floor::Floor;
pub use support::{Keys, PATIENCE, Server};

use redis::{InfoDict, aio::MultiplexedConnection};
use sprag::QueueName;

/// What the environment says, or else the default.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The queue of every bench.
pub fn queue() -> QueueName {
    QueueName::new("email").expect("queue")
}

pub async fn info(probe: &mut MultiplexedConnection, section: &str) -> InfoDict {
    probe::info(probe, section).await.expect("INFO")
}

/// µs of CPU that the server has used.
pub async fn cpu(probe: &mut MultiplexedConnection) -> f64 {
    probe::cpu(probe).await.expect("INFO")
}

/// Commands that ran, those inside scripts among them.
pub async fn commands(probe: &mut MultiplexedConnection) -> f64 {
    probe::commands(probe).await.expect("INFO")
}

/// Bytes that the server has allocated.
pub async fn used_memory(probe: &mut MultiplexedConnection) -> u64 {
    info(probe, "memory").await.get("used_memory").expect("a number")
}
