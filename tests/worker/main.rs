//! The library's worker on a real Redis and in real time, with short leases.
//!
//! `bench` is what a test holds: a server, clients, workers in this process, and a log of what their
//! handlers did; `process` is a worker in a process of its own, to be killed.

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod process;

mod away;
mod drain;
mod due;
mod idle;
mod kill;
mod lease;
mod queues;
mod verdicts;
mod waits;
mod wake;
