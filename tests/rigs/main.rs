//! The rigs of the other tests, tried with a plain client: what they promise is what happens.

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod sentinel;
mod server;
#[cfg(feature = "tls")]
mod tls;
