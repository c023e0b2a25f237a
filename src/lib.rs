//! **sprag** is a distributed job queue on Redis. Many app instances enqueue, many worker processes
//! claim and run; every change of a job's state is one Lua script inside Redis. Delivery is at
//! least once: a job moves forward, and a worker that has lost its grip cannot turn it back.
//!
//! # Layout
//!
//! Read in this order; each layer knows only those before it.
//!
//! * [`model`]: names, bounds, states, the envelope, [`StoreError`]. No I/O.
//! * [`store`]: the state machine behind [`Store`], a method per verb; on Redis and in memory.
//! * [`Client`]: typed jobs in. [`Worker`]: handlers that run them.

pub mod model;
pub mod store;

mod client;
mod job;
pub mod worker;

pub use client::{Client, Enqueue, OrJoin};
pub use job::Job;
pub use model::record::Undecodable;
pub use model::{
    Codec, Envelope, Fence, Fingerprint, JobId, Kind, Namespace, Partition, QueueName, State,
    StoreError, Timestamp, Unique, When, WorkerId,
};
pub use store::{Enqueued, ManualClock, MemoryStore, RedisStore, Store};
pub use worker::{Context, Report, Verdict, Worker};
