//! A server of a section's own, and what it tells of itself.
#![allow(dead_code, unused_imports, reason = "what is shared with tests and command has more")]
#![allow(unreachable_pub, reason = "a bench has no outside")]

#[path = "../../tests/support/mod.rs"]
pub(crate) mod support;

// What `sprag bench` measures too.
#[path = "../../src/cli/bench/floor.rs"]
mod floor;
#[path = "../../src/cli/bench/probe.rs"]
mod probe;

pub(crate) use floor::Floor;
pub(crate) use support::{Keys, PATIENCE, Server, key};

use redis::{InfoDict, aio::MultiplexedConnection};
use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// What a server writes to disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aof {
    Off,
    EverySecond,
}

/// What every server is told besides: `--redis`.
pub(crate) static SETTINGS: OnceLock<Vec<String>> = OnceLock::new();

impl Aof {
    pub(crate) async fn start(self) -> Server {
        let mut args = match self {
            Self::Off => Vec::new(),
            Self::EverySecond => vec!["--appendonly", "yes", "--appendfsync", "everysec"],
        };
        args.extend(SETTINGS.get().into_iter().flatten().map(String::as_str));
        Server::with_args(&args).await
    }

    /// Behind the name of what is measured.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Off => "",
            Self::EverySecond => "; AOF everysec",
        }
    }
}

pub(crate) async fn info(probe: &mut MultiplexedConnection, section: &str) -> InfoDict {
    probe::info(probe, section).await.expect("INFO")
}

/// µs of CPU that the server has used.
pub(crate) async fn cpu(probe: &mut MultiplexedConnection) -> f64 {
    probe::cpu(probe).await.expect("INFO")
}

/// Commands that ran, those inside scripts among them.
pub(crate) async fn commands(probe: &mut MultiplexedConnection) -> f64 {
    probe::commands(probe).await.expect("INFO")
}

/// Times that the server read from a client: several commands that come together count once.
pub(crate) async fn round_trips(probe: &mut MultiplexedConnection) -> f64 {
    info(probe, "stats").await.get("total_reads_processed").expect("a number")
}

/// Bytes that the server has allocated.
pub(crate) async fn used_memory(probe: &mut MultiplexedConnection) -> u64 {
    info(probe, "memory").await.get("used_memory").expect("a number")
}

/// From now on [`longest_call`] counts.
pub(crate) async fn reset_longest_call(probe: &mut MultiplexedConnection) {
    let percentiles = ["latency-tracking-info-percentiles", "100"];
    let set = redis::cmd("CONFIG").arg("SET").arg(&percentiles).to_owned();
    set.query_async::<()>(probe).await.expect("CONFIG SET");
    let reset = redis::cmd("CONFIG").arg("RESETSTAT").to_owned();
    reset.query_async::<()>(probe).await.expect("CONFIG RESETSTAT");
}

/// ms of the longest script call: so long every other client has waited.
pub(crate) async fn longest_call(probe: &mut MultiplexedConnection) -> f64 {
    let stats = info(probe, "latencystats").await;
    let of = |script| stats.get::<String>(&format!("latency_percentiles_usec_{script}"));
    let told = of("evalsha").expect("scripts were called");
    let micros = told.strip_prefix("p100=").and_then(|text| text.parse::<f64>().ok());
    micros.expect("a number") / 1e3
}

pub(crate) async fn flush(probe: &mut MultiplexedConnection) {
    redis::cmd("FLUSHALL").query_async::<()>(probe).await.expect("FLUSHALL");
}

/// Waits until so many workers have nothing to do.
pub(crate) async fn until_blocked(server: &Server, workers: usize) {
    let (mut probe, started) = (server.connection().await, Instant::now());
    while info(&mut probe, "clients").await.get("blocked_clients") != Some(workers) {
        assert!(started.elapsed() < 30 * PATIENCE, "the {workers} workers never block");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
