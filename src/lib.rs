//! **sprag** is a distributed job queue on Redis. Many app instances enqueue, many worker processes
//! claim and run; every change of a job's state is one Lua script inside Redis. Delivery is at
//! least once: a job moves forward, and a worker that has lost its grip cannot turn it back.
//!
//! ```
//! use sprag::{Client, Job, Worker};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct SendWelcome { user: u64 }
//!
//! impl Job for SendWelcome {
//!     const KIND: &'static str = "email:welcome";
//!     const QUEUE: &'static str = "email";
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), sprag::StoreError> {
//! let client = Client::connect("memory://")?; // or redis://…, or Client::from_env()
//! client.enqueue(SendWelcome { user: 7 }).await?;
//!
//! let (welcomed, mut done) = tokio::sync::mpsc::channel(1);
//! let worker = Worker::builder(&client)
//!     .handler(move |job: SendWelcome| {
//!         let welcomed = welcomed.clone();
//!         async move { welcomed.send(job.user).await }
//!     })
//!     .build()?;
//! let shutdown = worker.shutdown();
//! let worker = tokio::spawn(worker.run());
//! assert_eq!(done.recv().await, Some(7));
//! shutdown.drain();
//! assert_eq!(worker.await.expect("no panic").completed, 1);
//! # Ok(()) }
//! ```
//!
//! # To know at the start
//!
//! * A handler is an `async fn` of the job and of whatever else it [asks for](worker::FromJob). Its
//!   error is tried again: after 15 s, doubling up to a day, 25 attempts in all, then the job is
//!   archived. A [`Verdict`] in the error says otherwise; a panic is a failed attempt.
//! * A worker runs 10 jobs at a time under leases of 30 s, which a thread of its own extends; whoever
//!   loses its lease can change nothing more. SIGTERM drains for 25 s. All of it is set on
//!   [`Worker::builder`].
//! * A completed job is deleted, unless it has a retention: then it is kept with its result, to be
//!   read by [`Client::wait`] or [`Store::show`].
//! * Side effects may happen twice, when a worker dies after them: make them idempotent, or hand on
//!   [`Context::fence`].
//! * An enqueue that ends in [`StoreError::Unavailable`] may have been applied: give jobs an id or a
//!   unique key if you mean to repeat it.
//! * What goes wrong is told by `tracing`; without a subscriber it is told to nobody.
//! * Tests need no Redis: [`testing`].
//! * The feature `cli` is the command `sprag`; the library does not need it.
//!
//! # Layout
//!
//! Read in this order; each layer knows only those before it.
//!
//! * [`model`]: names, bounds, states, the envelope, [`StoreError`]. No I/O.
//! * [`store`]: the state machine behind [`Store`], a method per verb; on Redis and in memory.
//! * [`job`] and [`Client`]: typed jobs in. [`worker`]: handlers that run them. [`Inspector`]: looks
//!   and steers. [`testing`]: all of it in memory, for tests.

pub mod model;
pub mod store;
pub mod testing;

mod client;
pub mod inspect;
pub mod job;
mod trace;
pub mod worker;

#[doc(inline)]
pub use client::{Client, Enqueue, OrJoin, Wait, WaitError, with_env_password};
pub use inspect::Inspector;
#[doc(inline)]
pub use job::Job;
pub use model::record::Undecodable;
#[doc(inline)]
pub use model::{
    Codec, Envelope, Fence, Fingerprint, JobId, Kind, Namespace, Partition, QueueName, State,
    StoreError, Timestamp, Unique, When, WorkerId,
};
#[doc(inline)]
pub use store::{Enqueued, ManualClock, MemoryStore, RedisStore, Store};
pub use trace::TraceParent;
#[doc(inline)]
pub use worker::{Context, Report, Verdict, Worker};

/// The programs in README.md compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// And in docs/scaling.md.
#[cfg(doctest)]
#[doc = include_str!("../docs/scaling.md")]
struct ScalingPage;

/// So do those in docs/worker.md.
#[cfg(doctest)]
#[doc = include_str!("../docs/worker.md")]
struct WorkerPage;
