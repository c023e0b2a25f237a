//! Producers and a worker at work, and what they went through.

use crate::{
    lines::Lines,
    support::{Keys, PATIENCE, Server},
};
use sprag::{
    Client, Context, Job, QueueName, RedisStore, Report, StoreError, Worker, worker::Shutdown,
};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinHandle};

/// So many producers, each with one call in flight.
const PRODUCERS: u64 = 3;
/// So many answers may be on their way when a master dies: what it told and nobody else heard.
pub(crate) const IN_FLIGHT: usize = PRODUCERS as usize;
/// What a producer does between two jobs.
const BETWEEN: Duration = Duration::from_millis(10);
/// Work flows: so many jobs ran.
const FLOWING: usize = 20;
/// Longer than any drill: where a lease ran out, a job would be run twice.
const LEASE: Duration = Duration::from_secs(60);

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Part(u64);

impl Job for Part {
    const KIND: &'static str = "part";
}

/// A job that was acknowledged, or ran.
#[derive(Debug, Clone)]
struct Event {
    id: String,
    sent: Instant,
    at: Instant,
    attempt: u32,
    crash: u32,
}

type Events = Arc<watch::Sender<Vec<Event>>>;

fn note(events: &Events, event: Event) {
    events.send_modify(|all| all.push(event));
}

/// Producers and a worker of one queue. Their connections, too, end with it.
pub(crate) struct Shift {
    pub(crate) client: Client,
    pub(crate) queue: QueueName,
    pub(crate) lines: Lines,
    /// So many acknowledged jobs may be gone at the end.
    pub(crate) may_lose: usize,
    acked: Events,
    ran: Events,
    refused: Arc<watch::Sender<Vec<StoreError>>>,
    over: Arc<AtomicBool>,
    producers: Vec<JoinHandle<()>>,
    shutdown: Shutdown,
    working: JoinHandle<Report>,
}

pub(crate) fn client(url: &str) -> Client {
    Client::new(RedisStore::builder(url).build().expect("store"))
}

impl Shift {
    /// Begins, and waits until work flows.
    pub(crate) async fn start(url: &str) -> Self {
        Self::with(client(url), client(url), "default").await
    }

    /// The same with a client for the producers, one for the worker, and a queue.
    pub(crate) async fn with(producing: Client, working: Client, queue: &str) -> Self {
        let shift = Self::begin(producing, working, &[queue]).await;
        shift.until_flows().await;
        shift
    }

    pub(crate) async fn until_flows(&self) {
        self.until(&self.ran, "work to flow", |ran| ran.len() >= FLOWING).await;
    }

    /// Begins. All produce for the first queue; the worker is there for all.
    pub(crate) async fn begin(producing: Client, working: Client, queues: &[&str]) -> Self {
        let lines = Lines::new();
        let (acked, ran, refused): (Events, Events, Arc<watch::Sender<Vec<StoreError>>>) =
            Default::default();
        let (over, number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let queue = QueueName::new(queues[0]).expect("queue");
        let producers = (0..PRODUCERS).map(|_| {
            let (client, queue, over) = (producing.clone(), queue.clone(), over.clone());
            let (acked, refused, number) = (acked.clone(), refused.clone(), number.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    let (id, sent) = (format!("p-{number}"), Instant::now());
                    match client.enqueue(Part(number)).queue(&queue).id(&id).await {
                        Ok(_) => {
                            let at = Instant::now();
                            note(&acked, Event { id, sent, at, attempt: 0, crash: 0 });
                        }
                        Err(error) => refused.send_modify(|all| all.push(error)),
                    }
                    tokio::time::sleep(BETWEEN).await;
                }
            })
        });
        let producers = producers.collect();
        let handler = {
            let ran = ran.clone();
            move |_: Part, context: Context| {
                let ran = ran.clone();
                async move {
                    let (id, at) = (context.id().to_string(), Instant::now());
                    let (attempt, crash) = (context.attempt(), context.crash());
                    note(&ran, Event { id, sent: at, at, attempt, crash });
                    Ok::<_, std::io::Error>(())
                }
            }
        };
        let mut builder = Worker::builder(&working).lease(LEASE).concurrency(8).handler(handler);
        for queue in queues {
            builder = builder.queue(queue);
        }
        let worker = builder.build().expect("worker");
        let shutdown = worker.shutdown();
        let working = tokio::spawn(worker.run_until_shutdown());
        let client = producing;
        let may_lose = 0;
        Self {
            client,
            queue,
            lines,
            may_lose,
            acked,
            ran,
            refused,
            over,
            producers,
            shutdown,
            working,
        }
    }

    async fn until(&self, events: &Events, what: &str, so: impl Fn(&Vec<Event>) -> bool) {
        let mut events = events.subscribe();
        let waited = tokio::time::timeout(PATIENCE, events.wait_for(|all| so(all))).await;
        assert!(waited.is_ok(), "waited for {what}: {:#?}", self.lines.take());
    }

    /// Waits until a job that was sent after this moment is acknowledged, and one sent after it ran:
    /// how long each took from it.
    pub(crate) async fn flows_after(&self, moment: Instant) -> (Duration, Duration) {
        let new = |event: &&Event| event.sent > moment;
        self.until(&self.acked, "an enqueue", |all| all.iter().any(|e| new(&e))).await;
        let first = self.acked.borrow().iter().find(new).cloned().expect("just seen");
        let acked = first.at - moment;
        let is_it = |event: &&Event| event.id == first.id;
        self.until(&self.ran, "its run", |all| all.iter().any(|e| is_it(&e))).await;
        let ran = self.ran.borrow().iter().find(is_it).expect("just seen").at;
        (acked, ran.saturating_duration_since(moment))
    }

    /// What is produced from now on is at this server, and run.
    pub(crate) async fn goes_on(&self, server: &Server) {
        let (before, ran) = (self.acked(), self.ran());
        self.until(&self.acked, "more", |all| all.len() > before + FLOWING).await;
        self.until(&self.ran, "more runs", |all| all.len() > ran + FLOWING).await;
        assert!(server.is_running());
    }

    /// [`gaps`](Self::gaps), when work flows again.
    pub(crate) async fn gaps_until_flow(&self, since: Instant) -> (Duration, Duration) {
        let ran = self.ran();
        self.until(&self.ran, "work to flow again", |all| all.len() >= ran + FLOWING).await;
        self.gaps(since)
    }

    /// The longest time from this moment until now without an acknowledged job, and without a job that ran.
    pub(crate) fn gaps(&self, since: Instant) -> (Duration, Duration) {
        let longest = |events: &Events| {
            let events = events.borrow();
            let later = events.iter().map(|event| event.at).filter(|at| *at > since);
            let (mut last, mut longest) = (since, Duration::ZERO);
            for at in later.chain([Instant::now()]) {
                longest = longest.max(at.saturating_duration_since(last));
                last = at;
            }
            longest
        };
        (longest(&self.acked), longest(&self.ran))
    }

    pub(crate) fn acked(&self) -> usize {
        self.acked.borrow().len()
    }

    pub(crate) fn ran(&self) -> usize {
        self.ran.borrow().len()
    }

    /// Enqueues that were answered with an error.
    pub(crate) fn refusals(&self) -> Vec<StoreError> {
        self.refused.borrow().clone()
    }

    /// One job more, past the producers.
    pub(crate) async fn enqueue(&self, id: &str) {
        let sent = Instant::now();
        let part = self.client.enqueue(Part(u64::MAX)).queue(&self.queue).id(id);
        part.await.expect("admitted");
        let event = Event { id: id.to_owned(), sent, at: Instant::now(), attempt: 0, crash: 0 };
        note(&self.acked, event);
    }

    pub(crate) async fn until_ran(&self, id: &str) {
        self.until(&self.ran, "a run", |all| all.iter().any(|run| run.id == id)).await;
    }

    /// The producers go home.
    pub(crate) async fn stop_producing(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for producer in self.producers.drain(..) {
            tokio::time::timeout(PATIENCE, producer).await.expect("in time").expect("no panic");
        }
    }

    /// Everybody goes home when all is done: every acknowledged job ran, as if nothing had happened.
    /// How many of them ran more than once. `server` has the queue now.
    pub(crate) async fn ends_well(mut self, server: &Server) -> usize {
        self.stop_producing().await;
        assert_eq!(self.refusals(), [], "every call was repeated until it was answered");
        self.ended_well(server).await
    }

    /// The same, whatever the producers were told.
    pub(crate) async fn ended_well(mut self, server: &Server) -> usize {
        self.stop_producing().await;
        let mut runs: HashMap<String, usize> = HashMap::new();
        let started = Instant::now();
        let info = loop {
            let info = self.client.store().queue(&self.queue).await.expect("the queue is there");
            if info.unfinished == 0 {
                break info;
            }
            assert!(started.elapsed() < PATIENCE, "{info:?}: {:#?}", self.lines.take());
            tokio::time::sleep(BETWEEN).await;
        };
        Keys::read(&mut server.connection().await, &self.queue).await.check();
        self.shutdown.drain();
        let report = tokio::time::timeout(PATIENCE, &mut self.working).await;
        let report = report.expect("in time").expect("no panic");
        assert_eq!((info.archived, info.failed_today, info.quarantined), (0, 0, 0), "{info:?}");
        assert_eq!((report.retried, report.archived), (0, 0), "{report:?}");
        // What a lost master was told is not known to the next: its holder has lost it.
        assert!(self.may_lose > 0 || report.lost == 0, "{report:?}");
        for run in &*self.ran.borrow() {
            assert_eq!((run.attempt, run.crash), (0, 0), "{run:?}");
            *runs.entry(run.id.clone()).or_default() += 1;
        }
        let acked = self.acked.borrow();
        let lost: Vec<_> = acked.iter().filter(|job| !runs.contains_key(&job.id)).collect();
        assert!(lost.len() <= self.may_lose, "{} of {} lost: {lost:?}", lost.len(), acked.len());
        runs.values().filter(|runs| **runs > 1).count()
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        // After a failed assertion: they would go on until the test's end.
        self.producers.iter().for_each(JoinHandle::abort);
    }
}

/// For docs/deployment.md: time to the first answered call and the first run, connections tried, lines
/// logged.
pub(crate) fn told(drill: &str, flows: (Duration, Duration), tries: u64, lines: usize) {
    eprintln!(
        "{drill}: first answer {:?}, first run {:?}, {tries} tries, {lines} lines",
        flows.0, flows.1
    );
}
