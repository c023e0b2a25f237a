//! A run: what is measured through the library, and the floor before and after it.

use super::{Args, Figures, ballast::Ballast, floor::Floor, latency, probe};
use crate::{args::Global, connect, fail::Failure, out, scratch};
use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use redis::{RedisError, aio::MultiplexedConnection};
use sprag::{
    Client, Namespace, Report, StoreError, Worker,
    worker::{Data, Shutdown, WorkerBuilder},
};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::Notify,
    task::{JoinHandle, JoinSet},
};

/// Jobs of one command of the floor, at most.
const FLOOR_BATCH: usize = 64;
/// For so long it is looked whether others use the server.
const LISTEN: Duration = Duration::from_millis(300);
/// Idle workers and whoever watches send less than that, a second.
const BUSY_COMMANDS: f64 = 50.0;
/// An idle server needs less than that of a processor.
const BUSY_CPU: f64 = 0.03;
/// How long a run that was broken off may take to come to its end, and what was just being sent.
const ENDS: Duration = Duration::from_secs(3);
const ON_ITS_WAY: Duration = Duration::from_millis(50);

pub(super) struct Run {
    pub(super) client: Client,
    pub(super) payload: usize,
    jobs: usize,
    concurrency: usize,
    namespace: Namespace,
    probe: MultiplexedConnection,
    shows_progress: bool,
    worker: Option<(Shutdown, JoinHandle<Report>)>,
}

impl Run {
    /// Connects.
    pub(super) async fn new(
        global: &Global,
        args: &Args,
        url: &str,
        namespace: &Namespace,
    ) -> Result<Self, Failure> {
        let store = connect::builder(url)?.namespace(namespace.clone());
        let client = Client::new(store.repeat_budget(connect::BUDGET).build()?);
        // The library says best what is wrong with a server.
        client.store().queues().await?;
        Ok(Self {
            client,
            payload: args.payload,
            jobs: args.jobs,
            concurrency: args.concurrency,
            namespace: namespace.clone(),
            probe: scratch::connection(url).await?,
            shows_progress: !global.quiet && !global.json,
            worker: None,
        })
    }

    pub(super) async fn measure(&mut self) -> Result<Figures, Failure> {
        self.warn_if_busy().await.map_err(failed)?;
        let [start_p50_us, start_p99_us] = latency::measure(self).await?;
        // Around ours, so that a machine that slows down does not favour one of them.
        let before = self.floor().await?;
        let ours = self.ours().await?;
        let floor = (before + self.floor().await?) / 2.0;
        let jobs = self.jobs as f64;
        let cpu = ours.cpu_us / jobs;
        Ok(Figures {
            jobs: self.jobs,
            concurrency: self.concurrency,
            payload_bytes: self.payload,
            enqueue_per_s: (jobs / ours.enqueue.as_secs_f64()).round() as u64,
            drain_per_s: (jobs / ours.drain.as_secs_f64()).round() as u64,
            redis_cpu_us_per_job: hundredths(cpu),
            floor_cpu_us_per_job: hundredths(floor),
            ratio: hundredths(cpu / floor),
            bytes_per_waiting_job: ours.waiting_bytes / self.jobs as u64,
            commands_per_job: hundredths(ours.commands / jobs),
            start_p50_us,
            start_p99_us,
        })
    }

    /// Its CPU counts all clients.
    async fn warn_if_busy(&mut self) -> Result<(), RedisError> {
        let (started, cpu) = (Instant::now(), probe::cpu(&mut self.probe).await?);
        let commands = probe::commands(&mut self.probe).await?;
        tokio::time::sleep(LISTEN).await;
        let seconds = started.elapsed().as_secs_f64();
        let commands = (probe::commands(&mut self.probe).await? - commands) / seconds;
        let cpu = (probe::cpu(&mut self.probe).await? - cpu) / 1e6 / seconds;
        if commands > BUSY_COMMANDS || cpu > BUSY_CPU {
            out::warn(&format!(
                "sprag: Redis is busy with others ({commands:.0} commands/s, {:.0} % of a CPU), \
                 whose work counts here too: the figures are worse than they would be",
                cpu * 100.0
            ));
        }
        Ok(())
    }

    async fn floor(&mut self) -> Result<f64, Failure> {
        let bar = self.bar("floor", self.jobs as u64);
        let floor = Floor {
            prefix: format!("{}:{{floor}}", self.namespace),
            batch: self.concurrency.min(FLOOR_BATCH),
            in_flight: self.concurrency,
        };
        let bytes = self.payload;
        // Made before it is measured, so that what is out of bounds is told.
        Ballast::envelopes(1, bytes)?;
        let make = |count: usize| {
            bar.inc(count as u64);
            Ballast::envelopes(count, bytes).unwrap_or_default()
        };
        floor.cpu_per_job(&mut self.probe, self.jobs, make).await.map_err(failed)
    }

    async fn ours(&mut self) -> Result<Ours, Failure> {
        let cpu = probe::cpu(&mut self.probe).await.map_err(failed)?;
        let commands = probe::commands(&mut self.probe).await.map_err(failed)?;
        let enqueue = self.enqueue().await?;
        let cpu_enqueue = probe::cpu(&mut self.probe).await.map_err(failed)? - cpu;
        let waiting_bytes = self.waiting_bytes().await.map_err(failed)?;
        let cpu = probe::cpu(&mut self.probe).await.map_err(failed)?;
        let drain = self.drain().await?;
        let cpu_drain = probe::cpu(&mut self.probe).await.map_err(failed)? - cpu;
        let commands = probe::commands(&mut self.probe).await.map_err(failed)? - commands;
        Ok(Ours { enqueue, drain, cpu_us: cpu_enqueue + cpu_drain, waiting_bytes, commands })
    }

    /// As many producers as `concurrency`, each with one job at a time.
    async fn enqueue(&self) -> Result<Duration, Failure> {
        let bar = self.bar("enqueue", self.jobs as u64);
        let (left, started) = (Arc::new(AtomicUsize::new(self.jobs)), Instant::now());
        let mut producers = JoinSet::new();
        for _ in 0..self.concurrency.min(self.jobs) {
            let (client, left, bar) = (self.client.clone(), left.clone(), bar.clone());
            let bytes = self.payload;
            producers.spawn(async move {
                let less = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
                    client.enqueue(Ballast::of(bytes)).await?;
                    bar.inc(1);
                }
                Ok::<_, StoreError>(())
            });
        }
        while let Some(done) = producers.join_next().await {
            done.map_err(anyhow::Error::from)??;
        }
        Ok(started.elapsed())
    }

    /// By the server's count of the two keys in which a waiting job stands.
    async fn waiting_bytes(&mut self) -> Result<u64, RedisError> {
        let mut bytes = 0;
        for name in ["jobs", "pending:4"] {
            let key = format!("{}:{{bench}}:{name}", self.namespace);
            let mut usage = redis::cmd("MEMORY");
            usage.arg("USAGE").arg(key).arg("SAMPLES").arg(1_000);
            bytes += usage.query_async::<Option<u64>>(&mut self.probe).await?.unwrap_or(0);
        }
        Ok(bytes)
    }

    /// One worker, from its start until every job is settled.
    async fn drain(&mut self) -> Result<Duration, Failure> {
        let (jobs, bar) = (self.jobs, self.bar("drain", self.jobs as u64));
        let ran = Arc::new(Ran { jobs, bar, count: AtomicUsize::new(0), all: Notify::new() });
        let started = Instant::now();
        self.start(|worker| worker.data(ran.clone()).handler(count))?;
        if let Some((_, worker)) = &mut self.worker {
            tokio::select! {
                () = ran.all.notified() => {}
                _ = worker => {
                    self.worker = None;
                    return Err(anyhow!("the worker ended by itself").into());
                }
            }
        }
        let completed = self.stop().await?;
        if completed != jobs as u64 {
            return Err(anyhow!("{completed} of {jobs} jobs were completed").into());
        }
        Ok(started.elapsed())
    }

    /// Starts a worker.
    pub(super) fn start(
        &mut self,
        with: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    ) -> Result<(), StoreError> {
        let worker = with(Worker::builder(&self.client)).concurrency(self.concurrency).build()?;
        self.worker = Some((worker.shutdown(), tokio::spawn(worker.run_until_shutdown())));
        Ok(())
    }

    /// Lets the worker settle what it has; answers how many jobs it completed.
    pub(super) async fn stop(&mut self) -> Result<u64, Failure> {
        let Some((shutdown, worker)) = &mut self.worker else { return Ok(0) };
        shutdown.drain();
        let report = worker.await;
        self.worker = None;
        Ok(report.map_err(anyhow::Error::from)?.completed)
    }

    /// Ends what a run that was broken off left at work, so that nothing is written any more.
    pub(super) async fn end(&mut self) {
        if let Some((shutdown, worker)) = &mut self.worker {
            shutdown.abort();
            // A worker that does not end in time leaves keys behind, no more.
            let _ = tokio::time::timeout(ENDS, worker).await;
        }
        // Behind all that is on its way over this connection.
        tokio::time::sleep(ON_ITS_WAY).await;
        let _ = tokio::time::timeout(ENDS, self.client.store().queues()).await;
    }

    pub(super) fn bar(&self, name: &'static str, length: u64) -> ProgressBar {
        // indicatif draws on stderr, and only on a terminal.
        if !self.shows_progress {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template("{msg:13} {bar:40} {percent}%");
        ProgressBar::new(length)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_message(name)
            .with_finish(ProgressFinish::AndClear)
    }
}

/// What the library's run came to.
struct Ours {
    enqueue: Duration,
    drain: Duration,
    cpu_us: f64,
    waiting_bytes: u64,
    commands: f64,
}

/// The jobs that have run.
struct Ran {
    jobs: usize,
    bar: ProgressBar,
    count: AtomicUsize,
    all: Notify,
}

async fn count(_: Ballast, ran: Data<Arc<Ran>>) -> Result<(), Infallible> {
    ran.bar.inc(1);
    if ran.count.fetch_add(1, Ordering::Relaxed) + 1 == ran.jobs {
        ran.all.notify_one();
    }
    Ok(())
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// What was asked past the library, in its words.
fn failed(error: RedisError) -> Failure {
    let text = error.to_string();
    let away = error.is_io_error() || error.is_timeout() || error.is_connection_dropped();
    // Of a pipeline each command has its own.
    let codes = error.into_server_errors().unwrap_or_default();
    let full = codes.iter().any(|(_, error)| error.code() == "OOM");
    match away || full {
        true => StoreError::Unavailable(text).into(),
        false => StoreError::Backend(text).into(),
    }
}
