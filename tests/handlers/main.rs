//! What the author of a handler sees, on a memory store and its own clock: each test says what it has
//! enqueued, what its handler does, and what became of the job.

mod bench;

mod arguments;
mod errors;
mod hooks;
mod kinds;
mod layers;
mod producer;
mod progress;
mod results;
mod span;
mod times;
mod trace;
mod until_empty;
mod versions;
