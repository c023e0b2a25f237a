//! How a client and its servers come together, and what it can rely on then: durability, the pool,
//! readiness, the checks at connect, TLS.

#[path = "../support/mod.rs"]
mod support;

mod bounds;
mod checked;
#[cfg(feature = "cli")]
mod cli;
mod dropped;
mod failover;
mod fsync;
mod grouped;
mod logs;
mod pair;
mod pool;
mod ready;
mod repeated;
mod replicas;
#[cfg(feature = "tls")]
mod secrets;
#[cfg(feature = "sentinel")]
mod sentinels;
#[cfg(feature = "tls")]
mod tls;
mod world;
