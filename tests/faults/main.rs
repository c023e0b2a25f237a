//! Facts that hold when the wire breaks, the server refuses, memory is full, or a script dies.
//!
//! * `rig` is what a test holds: a server, a proxy in front of it, stores, and a dump of all keys;
//! * `world` is the state that every case starts from, `case` a call on it (`setup` and `enqueues`: what it needs and hands
//!   in), `wire` what befalls it;
//! * `matrix` runs every case under every fault; every other module holds the facts of one topic.
//!
//! Time is virtual unless a fact is about real time.

#[path = "../support/mod.rs"]
mod support;

mod case;
mod enqueues;
mod namespaces;
mod rig;
mod setup;
mod wire;
mod world;

mod absent;
mod callers;
mod claims;
mod connection;
mod entries;
mod errors;
mod events;
mod flush;
mod garbage;
mod gathered;
mod hands;
mod matrix;
mod memory;
mod roles;
mod scripts;
mod stub;
#[cfg(feature = "sentinel")]
mod switch;
mod table;
