//! The contract: one suite of facts, run on every store.
//!
//! * `backend` says what a store must bring along to be tried, and lists them;
//! * `checked` asserts the invariants after every single call;
//! * `trial` is what a case holds: a store, a queue of its own, a worker, and short verbs; `steer`
//!   has those of operators and time;
//! * `words` are short names for what cases expect;
//! * `elsewhere` runs the same cases on other kinds of servers;
//! * `declared` runs them too, and asserts that scripts touch no key but those they declare;
//! * every other module holds the facts of one topic, and names them in `cases!` at its top.
//!
//! Time is virtual: no case sleeps. The only real time is that of a `wait` that must find nothing.

#[path = "../support/mod.rs"]
mod support;

#[macro_use]
mod backend;
mod checked;
mod declared;
mod elsewhere;
mod redis;
mod steer;
mod trial;
mod words;

mod asked;
mod atomic;
mod batch;
mod bounds;
mod bytes;
mod cancel;
mod claim;
mod concurrent;
mod crash;
mod days;
mod deadline;
mod debounce;
mod debounce_key;
mod delete_queue;
mod ended;
mod enqueue;
mod events;
mod extend;
mod fence;
mod ghosts;
mod identity;
mod limit;
mod list;
mod operate;
mod places;
mod poison;
mod priority;
mod progress;
mod promote;
mod quarantine;
mod queues;
mod release;
mod remember;
mod replace;
mod replace_moves;
mod requeue;
mod rerun;
mod retention;
mod settings;
mod settle;
mod show;
mod slices;
mod stats;
mod sweep;
mod throttle;
mod unique;
mod wake;
mod workers;
