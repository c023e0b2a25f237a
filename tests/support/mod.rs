//! What the integration tests stand on: a real server of their own, and a proxy that breaks the
//! wire in front of it.
//!
//! A file in `tests/` says `mod support;`, a directory `#[path = "../support/mod.rs"] mod support;`.
#![allow(dead_code, unused_imports, reason = "each test crate uses a part of it")]
#![allow(unreachable_pub, reason = "a test crate has no outside; `pub` marks what tests call")]

mod invariants;
mod monitor;
mod proxy;
pub mod resp;
mod server;

pub use invariants::{Keys, key};
pub use proxy::{ANY_SCRIPT, On, Proxy};
pub use server::{Address, Server};

/// How long a test waits for an event before it fails: far more than any event takes.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
