//! The store in plain Rust.

/// placeholder replaced by the builder of this file
#[derive(Debug)]
pub struct MemoryStore;
/// placeholder replaced by the builder of this file
#[derive(Debug)]
pub struct ManualClock;
