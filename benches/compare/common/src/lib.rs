//! The command line that every Rust peer shares. A peer implements [`Peer`] and calls [`main`].
//!
//! ```text
//! PEER_REDIS=redis://127.0.0.1:7801 BIN enqueue N CONC [SLEEP_MS]  N jobs, one a call, CONC in flight
//!                                       batch N SIZE               N jobs by the library's batch API
//!                                       drain N CONC               work off N jobs that wait
//!                                       latency HZ SECS CONC       producer and worker in one process
//!                                       work CONC [LOGFILE]        work; log "S|D id ms" of each job
//! ```
//!
//! The answers are lines of JSON. `drain` and `latency` say one when all jobs have run and then wait
//! for the end of stdin, which the runner closes once the server shows that all are acknowledged;
//! the last line is how many jobs have run in all.

mod payload;
mod seen;

pub use payload::Payload;
pub use seen::handle;

use serde_json::{Value, json};
use std::env;
use std::io::Read as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Jobs that `latency` enqueues first, unmeasured: they open the connections.
const WARM_UP: u64 = 10;

#[async_trait::async_trait]
pub trait Peer: Clone + Send + Sync + 'static {
    /// `conc` is the number of producer tasks or of worker slots, for peers with a connection pool.
    async fn connect(url: &str, conc: usize) -> Self;

    async fn enqueue(&self, payload: Payload);

    /// False if the library has no batch API.
    async fn enqueue_batch(&self, _payloads: Vec<Payload>) -> bool {
        false
    }

    /// Runs a worker with `conc` slots whose handler calls [`handle`]. Need not return.
    async fn work(&self, conc: usize);
}

/// Whether the runner asks for the library's own defaults where a peer would tune the polling.
pub fn at_defaults() -> bool {
    env::var_os("PEER_DEFAULTS").is_some()
}

/// Runs the command that the arguments name.
pub fn main<P: Peer>() {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(run::<P>());
    // Some workers never return.
    std::process::exit(0);
}

async fn run<P: Peer>() {
    let url = env::var("PEER_REDIS").expect("PEER_REDIS");
    let command = env::args().nth(1).expect("a command");
    match command.as_str() {
        "enqueue" => enqueue::<P>(&url, arg(2), arg(3), optional(4)).await,
        "batch" => batch::<P>(&url, arg(2), arg(3)).await,
        "drain" => drain::<P>(&url, arg(2), arg(3)).await,
        "latency" => latency::<P>(&url, arg(2), arg(3), arg(4)).await,
        "work" => work::<P>(&url, arg(2)).await,
        other => panic!("unknown command {other}"),
    }
}

async fn enqueue<P: Peer>(url: &str, jobs: u64, conc: u64, sleep_ms: u64) {
    let peer = P::connect(url, conc as usize).await;
    // Some clients connect at the first call: one job a task before the clock starts.
    produce(&peer, 0..conc, conc, sleep_ms).await;
    let start = Instant::now();
    produce(&peer, conc..jobs, conc, sleep_ms).await;
    say(&json!({"timed": jobs.saturating_sub(conc), "secs": start.elapsed().as_secs_f64()}));
}

async fn produce<P: Peer>(peer: &P, ids: std::ops::Range<u64>, conc: u64, sleep_ms: u64) {
    let next = Arc::new(AtomicU64::new(ids.start));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..conc {
        let (peer, next, end) = (peer.clone(), next.clone(), ids.end);
        tasks.spawn(async move {
            loop {
                let id = next.fetch_add(1, Relaxed);
                if id >= end {
                    return;
                }
                peer.enqueue(Payload::new(id, sleep_ms)).await;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("a producer");
    }
}

async fn batch<P: Peer>(url: &str, jobs: u64, size: u64) {
    let peer = P::connect(url, 1).await;
    let mut start = Instant::now();
    let mut timed = 0;
    for first in (0..jobs).step_by(size as usize) {
        let ids = first..(first + size).min(jobs);
        let payloads: Vec<_> = ids.map(|id| Payload::new(id, 0)).collect();
        let count = payloads.len();
        if !peer.enqueue_batch(payloads).await {
            return say(&json!({"unsupported": true}));
        }
        // The first batch opens the connection.
        if first == 0 {
            start = Instant::now();
        } else {
            timed += count;
        }
    }
    say(&json!({"timed": timed, "secs": start.elapsed().as_secs_f64()}));
}

async fn drain<P: Peer>(url: &str, jobs: u64, conc: usize) {
    seen::expect(jobs);
    let peer = P::connect(url, conc).await;
    tokio::spawn(async move { peer.work(conc).await });
    finish(|| json!({"first_us": seen::first_us()})).await;
}

async fn latency<P: Peer>(url: &str, hz: u64, secs: u64, conc: usize) {
    let jobs = hz * secs;
    seen::expect(WARM_UP + jobs);
    let worker = P::connect(url, conc).await;
    tokio::spawn(async move { worker.work(conc).await });
    // A client of its own, as a producer elsewhere has.
    let producer = P::connect(url, conc).await;
    produce(&producer, 0..WARM_UP, WARM_UP, 0).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    seen::record_latencies();
    let mut tick = tokio::time::interval(Duration::from_micros(1_000_000 / hz));
    for id in 0..jobs {
        tick.tick().await;
        let (producer, payload) = (producer.clone(), Payload::new(WARM_UP + id, 0));
        tokio::spawn(async move { producer.enqueue(payload).await });
    }
    finish(|| {
        let all = seen::latencies_us();
        let at = |q: f64| all[((all.len() as f64 * q) as usize).min(all.len() - 1)];
        json!({"p50_us": at(0.5), "p99_us": at(0.99)})
    })
    .await;
}

async fn work<P: Peer>(url: &str, conc: usize) {
    if let Some(path) = env::args().nth(3) {
        seen::log_to(&path);
    }
    let peer = P::connect(url, conc).await;
    tokio::spawn(async move { peer.work(conc).await });
    stdin_closed().await;
}

/// Waits until the expected jobs have run, says so, and stays until the runner closes stdin, which
/// it also does when it loses patience.
async fn finish(all_have_run: impl FnOnce() -> Value) {
    let mut closed = pin!(stdin_closed());
    tokio::select! {
        () = seen::all() => {
            say(&all_have_run());
            closed.await;
        }
        () = &mut closed => {}
    }
    say(&json!({"handled": seen::handled()}));
}

async fn stdin_closed() {
    let read = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(read).await.expect("the reader").expect("stdin");
}

fn say(line: &Value) {
    println!("{line}");
}

fn arg<T: std::str::FromStr>(index: usize) -> T {
    let text = env::args().nth(index).unwrap_or_else(|| panic!("argument {index} is missing"));
    text.parse().unwrap_or_else(|_| panic!("argument {index} is no number: {text}"))
}

fn optional(index: usize) -> u64 {
    if env::args().len() > index { arg(index) } else { 0 }
}
