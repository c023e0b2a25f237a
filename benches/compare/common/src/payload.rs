//! What a job carries.

use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// About 200 bytes as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payload {
    pub id: u64,
    /// Wall clock at enqueue, µs.
    pub t_us: u64,
    pub sleep_ms: u64,
    pub pad: String,
}

impl Payload {
    pub fn new(id: u64, sleep_ms: u64) -> Self {
        Self { id, t_us: now_us(), sleep_ms, pad: "x".repeat(138) }
    }
}

pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    since.as_micros() as u64
}
