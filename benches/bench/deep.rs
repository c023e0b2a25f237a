//! How long calls take on a queue with a great many waiting jobs, of which none may depend on how
//! many; and how a sweep works off a great deal that became due at once, in slices of which none
//! holds Redis up.

use crate::{
    Plan,
    jobs::{envelope, envelopes, fill_with, queue},
    report::{Report, Row, median, number},
    server::{Server, longest_call, reset_longest_call},
};
use sprag::{
    Client, JobId, State, Store, When, WorkerId,
    store::{Complete, Held, Operation, Pace},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const DEPTH: usize = 200_000;
/// Beside which the depth shall make no difference.
const SHALLOW: usize = 1_000;
/// Times that each call is made; by then half of the shallow queue is left.
const CALLS: usize = 101;
/// Jobs of each kind that a sweep has to work off.
const BACKLOG: usize = 20_000;
const HOUR: Duration = Duration::from_secs(3_600);
const MILLISECOND: Duration = Duration::from_millis(1);
const LEASE: Duration = Duration::from_millis(100);

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let depth = plan.jobs(DEPTH);
    let (mut deep, mut shallow) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        deep.push(calls(depth).await);
        shallow.push(calls(SHALLOW).await);
    }
    for (i, (name, _)) in deep[0].iter().enumerate() {
        let of = |all: &[Vec<(&str, f64)>]| all.iter().map(|run| run[i].1).collect::<Vec<_>>();
        let name = format!("{name}, {} jobs waiting", number(depth as f64));
        report.row(Row::new(name, "ms", &of(&deep)).beside("1,000 jobs", &of(&shallow)));
    }
    backlog(plan.jobs(BACKLOG), report).await;
}

/// A queue, and the one who claims from it.
struct Scene {
    store: Arc<dyn Store>,
    worker: WorkerId,
    server: Server,
}

impl Scene {
    async fn new() -> Self {
        let server = Server::start().await;
        let client = Client::connect(&server.url()).expect("client");
        let worker = WorkerId::new("bench:1").expect("worker");
        Self { store: client.store().clone(), worker, server }
    }

    /// Enqueued and claimed.
    async fn claim(&self, jobs: usize, lease: Duration) -> Vec<Held> {
        let claim = self.store.claim(&queue(), &self.worker, jobs, lease).await.expect("claim");
        assert_eq!(claim.jobs.len(), jobs, "all of them");
        claim.jobs.into_iter().map(|job| Held { id: job.id, fence: job.fence }).collect()
    }
}

/// ms of each call, with the round trip: the median of many.
async fn calls(depth: usize) -> Vec<(&'static str, f64)> {
    let scene = Scene::new().await;
    let (store, queue, worker) = (&scene.store, queue(), &scene.worker);
    let id = |i: usize| JobId::new(format!("job-{i}")).expect("id");
    fill_with(&**store, &queue, depth, |i| envelope(|job| job.id(id(i)))).await;
    let middle = |i: usize| id(depth / 2 + i);
    let mut all = Vec::new();
    macro_rules! timed {
        ($name:literal, $i:ident => $call:expr) => {{
            let mut times = Vec::new();
            for $i in 0..CALLS {
                let start = Instant::now();
                $call.await.expect($name);
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            all.push(($name, median(times)));
        }};
    }
    timed!("show", i => store.show(&queue, &middle(i)));
    timed!("queue", _i => store.queue(&queue));
    timed!("list 100", _i => store.list(&queue, State::Pending, None, None, 100));
    timed!("cancel in the middle", i => store.operate(&queue, Operation::Cancel, &[middle(i)]));
    timed!("delete in the middle", i => store.operate(&queue, Operation::Delete, &[middle(200 + i)]));
    timed!("claim one", _i => store.claim(&queue, worker, 1, HOUR));
    timed!("sweep", _i => store.sweep(&queue, Pace::Now));
    let unfinished = store.queue(&queue).await.expect("queue").unfinished;
    assert_eq!(unfinished as usize, depth - 2 * CALLS, "cancelled and deleted, and no other");
    all
}

async fn backlog(jobs: usize, report: &mut Report) {
    let scene = Scene::new().await;
    let (store, queue) = (&scene.store, queue());
    let mut probe = scene.server.connection().await;
    for _ in (0..jobs).step_by(1_000) {
        let enqueue = async |jobs: Vec<_>| {
            store.enqueue(&queue, &jobs).await.expect("enqueue");
        };
        enqueue((0..1_000).map(|_| envelope(|job| job.retention(MILLISECOND))).collect()).await;
        let held = scene.claim(1_000, HOUR).await.into_iter();
        let done: Vec<_> = held.map(|held| Complete { held, result: None }).collect();
        store.complete(&queue, &done).await.expect("complete");
        enqueue(envelopes(1_000)).await;
        scene.claim(1_000, LEASE).await;
        enqueue((0..1_000).map(|_| envelope(|job| job.run_at(When::In(MILLISECOND)))).collect())
            .await;
    }
    tokio::time::sleep(LEASE + MILLISECOND).await;
    reset_longest_call(&mut probe).await;
    let start = Instant::now();
    let swept = store.sweep(&queue, Pace::Now).await.expect("sweep");
    let took = start.elapsed().as_secs_f64();
    let longest = longest_call(&mut probe).await;
    let name = format!(
        "sweep of {} reclaimed, {} promoted, {} evicted",
        swept.reclaimed, swept.promoted, swept.evicted
    );
    report.row(Row::new(name.clone(), "s", &[took]));
    report.row(Row::new(format!("{name}: longest script call"), "ms", &[longest]));
}
