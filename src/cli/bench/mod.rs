//! `sprag bench`: what the given Redis can do, beside the least that the same keys cost.
//!
//! `run` measures through the library, `latency` how soon jobs start, `floor` the least that there
//! can be; `probe` asks the server what it used. `benches/` shares the last two.

mod ballast;
mod floor;
mod latency;
mod probe;
mod run;

use crate::{args::Global, connect, fail::Failure, out, scratch, signals::Signals, units};
use anyhow::anyhow;
use run::Run;
use serde::Serialize;
use sprag::{StoreError, model::MAX_PAYLOAD};

/// Payloads that are in memory at a time, here and in Redis' buffers.
const MAX_IN_FLIGHT: usize = 64 << 20;

/// Measure what jobs cost on this Redis, and how soon they start
///
/// Enqueues through the library's client, as many producers as --concurrency with one job each, then
/// drains by one worker of that concurrency. Beside it the floor: the same variadic commands on the
/// same keys, pipelined in batches of up to 64, without Lua and without a promise, before and after.
/// `ratio` is Redis' CPU per job here over that there. Start latency is from
/// enqueue to start at 100 jobs/s, from when each job should have been sent.
///
/// All keys are in a namespace of its own, deleted at the end, also after Ctrl-C. Redis' CPU counts
/// all its clients: on one that is busy the figures are worse than they would be.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Jobs to enqueue and drain, 1 to 10000000
    #[arg(long, value_name = "N", default_value = "20000", value_parser = units::whole::<usize>(1..=10_000_000), allow_hyphen_values = true)]
    jobs: usize,
    /// Producers, and jobs that the worker runs at a time, 1 to 1000
    #[arg(long, value_name = "C", default_value = "100", value_parser = units::whole::<usize>(1..=1_000), allow_hyphen_values = true)]
    concurrency: usize,
    /// Bytes of a payload, 2 to 1048576
    #[arg(long, value_name = "BYTES", default_value = "200", value_parser = units::whole::<usize>(ballast::LEAST as u64..=MAX_PAYLOAD as u64), allow_hyphen_values = true)]
    payload: usize,
}

#[derive(Debug, Serialize)]
struct Figures {
    jobs: usize,
    concurrency: usize,
    payload_bytes: usize,
    enqueue_per_s: u64,
    drain_per_s: u64,
    redis_cpu_us_per_job: f64,
    floor_cpu_us_per_job: f64,
    ratio: f64,
    bytes_per_waiting_job: u64,
    commands_per_job: f64,
    start_p50_us: u64,
    start_p99_us: u64,
}

pub(crate) async fn bench(global: &Global, args: Args) -> Result<(), Failure> {
    if args.concurrency.saturating_mul(args.payload) > MAX_IN_FLIGHT {
        let text = "--payload: so many of them at a time are more than 64 MiB; must be less, or \
                    --concurrency";
        return Err(StoreError::Invalid(text.to_owned()).into());
    }
    let namespace = scratch::namespace(global, "bench")?;
    let url = connect::url(global)?;
    scratch::check_url(&url, "bench")?;
    // Before there is anything that would be left behind.
    let mut signals = Signals::listen()?;
    let mut run = tokio::select! {
        run = Run::new(global, &args, &url, &namespace) => run?,
        () = signals.one() => return Err(anyhow!("interrupted").into()),
    };
    let text = format!("Measures in the namespace {namespace}, whose keys it deletes at the end.");
    out::talk(global, &text);
    let measured = tokio::select! {
        measured = run.measure() => measured,
        () = signals.one() => Err(anyhow!("interrupted").into()),
    };
    if measured.is_err() {
        run.end().await;
    }
    let cleaned = scratch::clean_up(&url, &namespace).await;
    finish(global, measured, cleaned)
}

/// What it was about comes first; that keys are left behind is said as well.
fn finish(
    global: &Global,
    measured: Result<Figures, Failure>,
    cleaned: anyhow::Result<()>,
) -> Result<(), Failure> {
    let told = measured.and_then(|figures| tell(global, &figures));
    let (Err(left), Err(_)) = (&cleaned, &told) else {
        return told.and(cleaned.map_err(Into::into));
    };
    out::warn(&crate::redact::redacted(&format!("sprag: {left:#}")));
    told
}

fn tell(global: &Global, figures: &Figures) -> Result<(), Failure> {
    if global.json {
        return out::object(figures);
    }
    let shape = format!(
        "{} of {} bytes, {} at a time",
        figures.jobs, figures.payload_bytes, figures.concurrency
    );
    out::pairs(vec![
        ("jobs", shape),
        ("enqueue", format!("{} jobs/s", figures.enqueue_per_s)),
        ("drain", format!("{} jobs/s", figures.drain_per_s)),
        ("Redis' CPU", format!("{:.1} µs/job", figures.redis_cpu_us_per_job)),
        ("the floor's", format!("{:.1} µs/job", figures.floor_cpu_us_per_job)),
        ("ratio", format!("{:.2}", figures.ratio)),
        ("waiting job", format!("{} bytes", figures.bytes_per_waiting_job)),
        ("commands", format!("{:.1} per job", figures.commands_per_job)),
        ("start, median", format!("{} µs after enqueue", figures.start_p50_us)),
        ("start, 99 %", format!("{} µs after enqueue", figures.start_p99_us)),
    ])
}
