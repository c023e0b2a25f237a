//! What this process' handlers have seen.

use crate::payload::{Payload, now_us};
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

static EXPECTED: AtomicU64 = AtomicU64::new(u64::MAX);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static FIRST_US: OnceLock<u64> = OnceLock::new();
static RECORDING: AtomicBool = AtomicBool::new(false);
static LATENCIES_US: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static LOG: OnceLock<Mutex<File>> = OnceLock::new();
static ALL: Notify = Notify::const_new();

/// What every peer's handler does with a job.
pub async fn handle(payload: Payload) {
    let now = now_us();
    FIRST_US.get_or_init(|| now);
    if RECORDING.load(SeqCst) {
        let latency = now.saturating_sub(payload.t_us);
        LATENCIES_US.lock().expect("no panic").push(latency);
    }
    if payload.sleep_ms > 0 {
        log('S', payload.id);
        tokio::time::sleep(Duration::from_millis(payload.sleep_ms)).await;
        log('D', payload.id);
    }
    if HANDLED.fetch_add(1, SeqCst) + 1 == EXPECTED.load(SeqCst) {
        ALL.notify_one();
    }
}

pub(crate) fn expect(jobs: u64) {
    EXPECTED.store(jobs, SeqCst);
}

/// Waits until the expected number of jobs has run.
pub(crate) async fn all() {
    ALL.notified().await;
}

pub(crate) fn handled() -> u64 {
    HANDLED.load(SeqCst)
}

/// When the first job started.
pub(crate) fn first_us() -> u64 {
    *FIRST_US.get().expect("a job has run")
}

pub(crate) fn record_latencies() {
    RECORDING.store(true, SeqCst);
}

/// Sorted.
pub(crate) fn latencies_us() -> Vec<u64> {
    let mut all = LATENCIES_US.lock().expect("no panic").clone();
    all.sort_unstable();
    all
}

pub(crate) fn log_to(path: &str) {
    let file = File::options().create(true).append(true).open(path).expect("a log file");
    LOG.set(Mutex::new(file)).expect("set once");
}

fn log(what: char, id: u64) {
    if let Some(log) = LOG.get() {
        let line = format!("{what} {id} {}\n", now_us() / 1000);
        log.lock().expect("no panic").write_all(line.as_bytes()).expect("the log file");
    }
}
