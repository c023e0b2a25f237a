//! What happens beside the deliveries, in a queue of its own: a burst of events that becomes one
//! run, and a job that kills every worker that touches it.

use super::{
    check::Verdict,
    journal::{Journal, Reader},
    place::Place,
    processes::{self, Parts},
};
use crate::{args::Global, connect, fail::Failure};
use anyhow::{anyhow, bail};
use serde::{Deserialize, Serialize};
use sprag::{
    Client, Codec, Context, Inspector, Job, JobId, State, StoreError, Unique, Worker,
    model::Mode,
    store::{Quarantine, QueueInfo},
};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

const QUEUE: &str = "special";
/// Where its handlers write what they are given.
const RAN: &str = "special.jsonl";
const EVENTS: u64 = 10;
/// An event puts the run off until so long after it.
const WINDOW: Duration = Duration::from_millis(500);
/// Short, so that a dead worker is noticed soon.
const LEASE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize)]
struct CartChanged {
    cart: String,
    items: u64,
}

impl Job for CartChanged {
    const KIND: &'static str = "cart:changed";
    const QUEUE: &'static str = QUEUE;
    const CODEC: Codec = Codec::Json;
    const RETENTION: Option<Duration> = Some(Duration::from_secs(3_600));

    fn unique(&self) -> Option<Unique> {
        let debounce = Mode::Debounce { window: WINDOW, max_wait: None };
        Some(Unique::key(&self.cart).mode(debounce))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Poison {
    file: String,
}

impl Job for Poison {
    const KIND: &'static str = "picture:shrink";
    const QUEUE: &'static str = QUEUE;
    const CODEC: Codec = Codec::Json;
}

/// A run of one of these handlers.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    id: String,
    pid: u32,
    /// What the event said; none for the poison.
    items: Option<u64>,
}

/// What became of it all.
#[derive(Debug)]
pub(super) struct Story {
    /// The jobs that the events were told.
    events: Vec<String>,
    runs: Vec<Run>,
    poison: JobId,
    /// Processes that ended by themselves.
    deaths: Vec<u32>,
    entry: Quarantine,
    /// After it was released and archived.
    ended: State,
    unfinished: u64,
    completed: u64,
}

pub(super) async fn worker(global: &Global, dir: &Path) -> Result<(), Failure> {
    let client = connect::client(global)?;
    let journal = Arc::new(Journal::open(dir, RAN)?);
    let write = move |context: &Context, items| {
        let (id, pid) = (context.id().to_string(), std::process::id());
        journal.write(&Run { id, pid, items })
    };
    let note = write.clone();
    let worker = Worker::builder(&client)
        .handler(move |job: CartChanged, context: Context| {
            let noted = note(&context, Some(job.items));
            async move { noted }
        })
        .handler(move |_: Poison, context: Context| {
            let noted = write(&context, None);
            async move {
                noted?;
                // As a crash in a library of C would do it: nobody is told.
                std::process::exit(1);
                #[allow(unreachable_code, reason = "a handler has an answer")]
                Ok::<(), std::io::Error>(())
            }
        })
        .queue(QUEUE)
        .lease(LEASE)
        .grace(Duration::from_secs(1))
        .build()?;
    let shutdown = worker.shutdown();
    processes::end_with_parent(move || shutdown.drain());
    worker.run_until_shutdown().await;
    Ok(())
}

pub(super) async fn run(place: &Place, dir: &Path, parts: &mut Parts) -> Result<Story, Failure> {
    let client = Client::new(place.store()?);
    let inspector = client.inspector();
    let mut events = Vec::new();
    for items in 1..=EVENTS {
        match client.enqueue(CartChanged { cart: "cart-7".to_owned(), items }).await {
            Ok(job) => events.push(job.id.to_string()),
            Err(StoreError::Duplicate { existing_id, replaced: true }) => events.push(existing_id),
            Err(error) => return Err(error.into()),
        }
    }
    let mut deaths = Vec::new();
    // First alone: a run beside the poison would be lost with it, and come again.
    until(|info| info.completed > 0, &inspector, (place, dir), parts, &mut deaths).await?;
    let poison = client.enqueue(Poison { file: "broken.png".to_owned() }).await?.id;
    let in_quarantine = |info: &QueueInfo| info.quarantined > 0 && info.unfinished == 0;
    until(in_quarantine, &inspector, (place, dir), parts, &mut deaths).await?;
    for worker in &mut parts.workers {
        processes::drain(worker).await?;
    }
    let entry = inspector.quarantines(QUEUE).await?.into_iter().next();
    let entry = entry.ok_or_else(|| anyhow!("nothing is in quarantine"))?;
    // The last worker is away: nobody runs it when it is pending again.
    inspector.release(QUEUE, entry.fingerprint).await?;
    inspector.archive(QUEUE, &poison).await?;
    let ended = inspector.job(QUEUE, &poison).await?.state;
    let info = inspector.queue(QUEUE).await?;
    let runs = Reader::new(dir, RAN).next()?;
    let (unfinished, completed) = (info.unfinished, info.completed);
    Ok(Story { events, runs, poison, deaths, entry, ended, unfinished, completed })
}

/// Starts a worker whenever one has died, as a supervisor does, until the queue is as it shall be.
async fn until(
    done: impl Fn(&QueueInfo) -> bool,
    inspector: &Inspector,
    (place, dir): (&Place, &Path),
    parts: &mut Parts,
    deaths: &mut Vec<u32>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        if parts.workers.is_empty() {
            parts.workers.push(processes::start(place, dir, &["special-worker"])?);
        }
        let info = inspector.queue(QUEUE).await?;
        if done(&info) {
            return Ok(());
        }
        let pid = parts.workers[0].id();
        if parts.workers[0].try_wait()?.is_some() {
            deaths.extend(pid);
            parts.workers.clear();
        }
        if started.elapsed() > PATIENCE {
            bail!("not done after {} s: {info:?}", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

impl Story {
    /// Adds it to the table, and what is not as it should be.
    pub(super) fn judge(&self, verdict: &mut Verdict) {
        let event_runs: Vec<u64> = self.runs.iter().filter_map(|run| run.items).collect();
        let kills: Vec<&Run> = self.runs.iter().filter(|run| run.items.is_none()).collect();
        verdict.debounced_events = self.events.len() as u64;
        verdict.debounced_runs = event_runs.len() as u64;
        verdict.poison_crashes = self.entry.crashes.into();
        verdict.poison_worker = self.entry.worker.as_ref().map(ToString::to_string);
        let mut check = |is: bool, text: String| {
            if !is {
                verdict.deviations.push(text);
            }
        };
        let one_job = self.events.iter().all(|id| *id == self.events[0]);
        check(one_job, format!("the debounced events are several jobs: {:?}", self.events));
        check(event_runs == [EVENTS], format!("debounced events ran as {event_runs:?}"));
        check(self.completed == 1, format!("{} debounced jobs are completed", self.completed));
        let killed: Vec<u32> = kills.iter().map(|run| run.pid).collect();
        check(killed == self.deaths, format!("it ran in {killed:?}, {:?} died", self.deaths));
        check(
            self.entry.crashes as usize == killed.len(),
            format!("{} crashes counted of {}", self.entry.crashes, killed.len()),
        );
        let last = killed.last().map(|pid| format!(":{pid}:")).unwrap_or_default();
        let named = self.entry.worker.as_ref().is_some_and(|name| name.as_str().contains(&last));
        check(named, format!("{:?} is not the worker that died last", self.entry.worker));
        let sampled = self.entry.sample_id.as_ref() == Some(&self.poison);
        check(sampled, format!("{:?} is not the poison", self.entry.sample_id));
        check(
            self.ended == State::Archived && self.unfinished == 0,
            format!("the poison ended {}, {} jobs are unfinished", self.ended, self.unfinished),
        );
    }
}
