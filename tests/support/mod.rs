//! What the integration tests stand on: a real server of their own, and a proxy that breaks the
//! wire in front of it.
//!
//! A file in `tests/` says `mod support;`, a directory `#[path = "../support/mod.rs"] mod support;`.
#![allow(dead_code, unused_imports, reason = "each test crate uses a part of it")]
#![allow(unreachable_pub, reason = "a test crate has no outside; `pub` marks what tests call")]

mod cluster;
mod cluster_view;
mod elsewhere;
mod ground;
mod invariants;
mod make;
mod migration;
mod monitor;
mod process;
mod proxy;
pub mod resp;
mod sentinel;
mod server;
mod tls;

pub use cluster::{Cluster, ClusterSetup, Node};
pub use elsewhere::Elsewhere;
pub use ground::{CASES, Ground, rules_of_cases};
pub use invariants::{Keys, key, key_in};
pub use make::Make;
pub use migration::Migration;
pub use proxy::{ANY_SCRIPT, On, Proxy};
pub use sentinel::{MASTER, SentinelSetup, Sentinels};
pub use server::{Address, Server, Setup};
pub use tls::{Certificates, Pair, TlsServer, TlsSetup};

/// How long a test waits for an event before it fails: far more than any event takes.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
