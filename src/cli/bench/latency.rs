//! How long from enqueue to start. Jobs come at a fixed rate whether or not those before them have
//! started, and each is measured from when it *should* have been sent: no wait is left out.

use super::{ballast::Ballast, run::Run};
use crate::fail::Failure;
use anyhow::{anyhow, bail};
use hdrhistogram::Histogram;
use sprag::{JobId, worker::Data};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, task::JoinSet};

const PER_SECOND: u32 = 100;
/// Connections are made and scripts loaded in the first second, which is not counted.
const WARM_UP: u32 = PER_SECOND;
const MEASURED: u32 = 3 * PER_SECOND;
/// A job that has not started so long after the last was sent will not.
const PATIENCE: Duration = Duration::from_secs(10);

/// A job's number is its id; its moment stands here.
struct Waits {
    start: Instant,
    seen: Mutex<Seen>,
}

struct Seen {
    started: u32,
    waits: Histogram<u64>,
}

impl Waits {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Counters: a panic leaves none half-done.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moment(&self, number: u32) -> Instant {
        self.start + Duration::from_secs(1) / PER_SECOND * number
    }

    fn started(&self, number: u32) {
        let wait = Instant::now().saturating_duration_since(self.moment(number));
        let mut seen = self.seen();
        seen.started += 1;
        if number >= WARM_UP {
            seen.waits
                .saturating_record(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX).max(1));
        }
    }
}

/// The median and the 99th of a hundred, in µs.
pub(super) async fn measure(run: &mut Run) -> Result<[u64; 2], Failure> {
    let jobs = WARM_UP + MEASURED;
    let bar = run.bar("start latency", jobs.into());
    let start = Instant::now() + Duration::from_millis(10);
    // Up to an hour, to 3 digits.
    let waits = Histogram::new_with_max(3_600_000_000, 3).map_err(|error| anyhow!("{error}"))?;
    let seen = Mutex::new(Seen { started: 0, waits });
    let waits = Arc::new(Waits { start, seen });
    run.start(|worker| worker.data(waits.clone()).handler(note))?;
    let (client, bytes) = (run.client.clone(), run.payload);
    let mut sent = JoinSet::new();
    let mut due = moments(waits.clone(), jobs);
    while let Some(number) = due.recv().await {
        let enqueue = client.enqueue(Ballast::of(bytes)).id(number.to_string());
        sent.spawn(async move { enqueue.await });
        bar.inc(1);
    }
    while let Some(done) = sent.join_next().await {
        done.map_err(anyhow::Error::from)??;
    }
    until_started(&waits, jobs).await?;
    run.stop().await?;
    let seen = waits.seen();
    Ok([0.5, 0.99].map(|part| seen.waits.value_at_quantile(part)))
}

async fn note(
    _: Ballast,
    id: JobId,
    waits: Data<Arc<Waits>>,
) -> Result<(), std::num::ParseIntError> {
    waits.started(id.as_str().parse()?);
    Ok(())
}

async fn until_started(waits: &Waits, jobs: u32) -> anyhow::Result<()> {
    let sent = Instant::now();
    loop {
        let started = waits.seen().started;
        if started >= jobs {
            return Ok(());
        }
        if sent.elapsed() > PATIENCE {
            bail!("{} of {jobs} jobs did not start within {PATIENCE:?}", jobs - started);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Tells each number when its moment has come: from a thread, for tokio's timer counts in ms.
fn moments(waits: Arc<Waits>, jobs: u32) -> mpsc::UnboundedReceiver<u32> {
    let (tell, told) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for number in 0..jobs {
            thread::sleep(waits.moment(number).saturating_duration_since(Instant::now()));
            if tell.send(number).is_err() {
                return;
            }
        }
    });
    told
}
