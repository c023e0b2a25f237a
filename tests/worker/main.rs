//! The library's worker on a real Redis and in real time, with short leases.
//!
//! `bench` is what a test holds: a server, clients, workers in this process, and a log of what their
//! handlers did; `process` is a worker in a process of its own, to be killed;
//! `steer` is what operators do and see.

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod process;
mod steer;

mod away;
mod deaf;
mod discover;
mod drain;
mod due;
mod idle;
mod kill;
mod late;
mod lease;
mod outage;
mod progress;
mod queues;
mod refused;
mod runaway;
mod settling;
mod several;
mod signals;
mod spare;
mod spins;
mod stands_still;
mod steered;
mod told;
mod verdicts;
mod waits;
mod wake;
