//! A queue of 10,000,000 waiting jobs beside one of 100: Redis' CPU per job of enqueue, claim,
//! complete and cancel, in batches of 64 and one by one; bytes per waiting job; and how fast all of it
//! is enqueued and worked off.
//!
//! No script does more on a deep queue, but a job that comes out of gigabytes is in no cache, and on a
//! virtual machine not even in the page tables: the floor, as deep, says how much of a rise is that.

use crate::{
    Plan,
    jobs::{check_settled, envelope, fill_with, queue},
    report::{Report, Row, number},
    server::{Floor, Server, cpu, used_memory},
};
use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use sprag::{
    Client, Codec, Envelope, JobId, Store, WorkerId,
    store::{Complete, Held, Operation},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// What the great queue stands beside.
const FEW: usize = 100;
/// A round has fewer jobs than the few.
const SHAPES: [Shape; 2] =
    [Shape { batch: 64, calls: 1, rounds: 200 }, Shape { batch: 1, calls: 50, rounds: 50 }];
/// Jobs of a claim, and claims in flight, where all is worked off.
const DRAIN: (usize, usize) = (1_000, 4);
/// Jobs of a call of the floor, where its queue is filled.
const FLOOR_FILL: usize = 1_000;
const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let shapes = SHAPES.map(|shape| Shape { rounds: plan.pick(shape.rounds, 20), ..shape });
    let name = |what: &str| format!("{} jobs waiting: {what}", number(plan.waiting as f64));
    // Before the great queue is there: what was touched last is at hand, for each of the two.
    let floors = DeepFloor::lives(plan, &shapes).await;
    let mut few = Depth::fill(FEW).await;
    let mut great = Depth::fill(plan.waiting).await;
    for (shape, (deep_floor, shallow_floor)) in shapes.iter().zip(&floors) {
        let (mut in_great, mut in_few) = (Vec::new(), Vec::new());
        for _ in 0..plan.runs {
            in_few.push(few.lives(shape).await);
            in_great.push(great.lives(shape).await);
        }
        let lives: Vec<f64> = in_great.iter().map(|life| life.iter().sum()).collect();
        let life = name(&format!("whole life, batches of {}", shape.batch));
        report.row(Row::new(life, "µs/job", &lives).beside("floor", deep_floor));
        let life = name(&format!("the floor's, batches of {}", shape.batch));
        report.row(Row::new(life, "µs/job", deep_floor).beside("100 waiting", shallow_floor));
        for (i, verb) in ["enqueue", "claim", "complete"].into_iter().enumerate() {
            let of = |all: &[[f64; 3]]| all.iter().map(|run| run[i]).collect::<Vec<_>>();
            let name = name(&format!("{verb}, batches of {}", shape.batch));
            let row = Row::new(name, "µs/job", &of(&in_great));
            report.row(row.beside("100 waiting", &of(&in_few)));
        }
    }
    // Last: what is cancelled leaves its entry in the lane, which a claim has to skip.
    for shape in &shapes {
        let (mut in_great, mut in_few) = (Vec::new(), Vec::new());
        for _ in 0..plan.runs {
            in_few.push(few.cancels(shape).await);
            in_great.push(great.cancels(shape).await);
        }
        let name = name(&format!("cancel, batches of {}", shape.batch));
        report.row(Row::new(name, "µs/job", &in_great).beside("100 waiting", &in_few));
    }
    report.row(Row::new(name("memory, payload of 16 bytes"), "bytes/job", &[great.bytes]));
    report.row(Row::new(name("enqueued in batches of 1,000"), "jobs/s", &[great.fill_rate]));
    few.drain().await;
    report.row(Row::new(name("all worked off"), "jobs/s", &[great.drain().await]));
}

/// How calls come.
struct Shape {
    /// Jobs of a call.
    batch: usize,
    /// Calls of a round, one after another.
    calls: usize,
    /// Rounds of a run.
    rounds: usize,
}

impl Shape {
    fn jobs(&self) -> usize {
        self.batch * self.calls * self.rounds
    }
}

/// A queue on a server of its own.
struct Depth {
    server: Server,
    probe: MultiplexedConnection,
    client: Client,
    store: Arc<dyn Store>,
    worker: WorkerId,
    waiting: usize,
    /// Since it was made.
    completed: u64,
    bytes: f64,
    fill_rate: f64,
    /// µs that asking for the CPU costs.
    asking: f64,
}

impl Depth {
    async fn fill(waiting: usize) -> Self {
        let server = Server::start().await;
        let client = Client::connect(&server.url()).expect("client");
        let (mut probe, store) = (server.connection().await, client.store().clone());
        let (before, started) = (used_memory(&mut probe).await, Instant::now());
        fill_with(&*store, &queue(), waiting, |_| job()).await;
        let fill_rate = waiting as f64 / started.elapsed().as_secs_f64();
        let bytes = used_memory(&mut probe).await.saturating_sub(before) as f64 / waiting as f64;
        let mut asked = Vec::new();
        for _ in 0..101 {
            let before = cpu(&mut probe).await;
            asked.push(cpu(&mut probe).await - before);
        }
        asked.sort_by(f64::total_cmp);
        let worker = WorkerId::new("bench:1").expect("worker");
        let (completed, asking) = (0, asked[50]);
        Self { server, probe, client, store, worker, waiting, completed, bytes, fill_rate, asking }
    }

    /// µs of CPU since it was asked before, without the asking itself.
    async fn used(&mut self, before: f64) -> f64 {
        cpu(&mut self.probe).await - before - self.asking
    }

    /// µs per job of enqueue, claim, complete. After each round as many jobs wait as before it.
    async fn lives(&mut self, shape: &Shape) -> [f64; 3] {
        let (mut used, store, queue) = ([0.0; 3], self.store.clone(), queue());
        for _ in 0..shape.rounds {
            let before = cpu(&mut self.probe).await;
            let mut held = Vec::new();
            for _ in 0..shape.calls {
                let claim = store.claim(&queue, &self.worker, shape.batch, HOUR).await;
                let jobs = claim.expect("claim").jobs.into_iter();
                held.extend(jobs.map(|job| done(job.id, job.fence)));
            }
            used[1] += self.used(before).await;
            assert_eq!(held.len(), shape.batch * shape.calls, "there were so many");
            let before = cpu(&mut self.probe).await;
            for held in held.chunks(shape.batch) {
                let outcomes = store.complete(&queue, held).await.expect("complete");
                assert!(outcomes.iter().all(Result::is_ok), "all are ours");
            }
            used[2] += self.used(before).await;
            self.completed += held.len() as u64;
            used[0] += self.enqueue(shape).await.1;
        }
        self.check_waiting().await;
        used.map(|used| used / shape.jobs() as f64)
    }

    /// µs per job; those that are cancelled were enqueued for it.
    async fn cancels(&mut self, shape: &Shape) -> f64 {
        let mut used = 0.0;
        for _ in 0..shape.rounds {
            let ids = self.enqueue(shape).await.0;
            let before = cpu(&mut self.probe).await;
            for ids in ids.chunks(shape.batch) {
                let answer = self.store.operate(&queue(), Operation::Cancel, ids).await;
                assert!(answer.expect("cancel").iter().all(Result::is_ok), "all waited");
            }
            used += self.used(before).await;
        }
        self.check_waiting().await;
        used / shape.jobs() as f64
    }

    async fn check_waiting(&self) {
        let unfinished = self.store.queue(&queue()).await.expect("queue").unfinished;
        assert_eq!(unfinished as usize, self.waiting, "as many as before");
    }

    async fn enqueue(&mut self, shape: &Shape) -> (Vec<JobId>, f64) {
        let made: Vec<_> = (0..shape.batch * shape.calls).map(|_| job()).collect();
        let before = cpu(&mut self.probe).await;
        for made in made.chunks(shape.batch) {
            let outcomes = self.store.enqueue(&queue(), made).await.expect("enqueue");
            assert!(outcomes.iter().all(Result::is_ok), "all are admitted");
        }
        let used = self.used(before).await;
        (made.iter().map(|job| job.id().clone()).collect(), used)
    }

    /// Claims and completes all that is left: jobs per second.
    async fn drain(self) -> f64 {
        let (queue, (batch, in_flight)) = (queue(), DRAIN);
        let started = Instant::now();
        let one_after_another = || async {
            let mut done = 0;
            loop {
                let claim = self.store.claim(&queue, &self.worker, batch, HOUR).await;
                let claim = claim.expect("claim");
                let jobs: Vec<_> =
                    claim.jobs.into_iter().map(|job| self::done(job.id, job.fence)).collect();
                if jobs.is_empty() && !claim.more {
                    return done;
                }
                let outcomes = self.store.complete(&queue, &jobs).await.expect("complete");
                assert!(outcomes.iter().all(Result::is_ok), "all are ours");
                done += jobs.len();
            }
        };
        let drained: usize =
            join_all((0..in_flight).map(|_| one_after_another())).await.iter().sum();
        let rate = drained as f64 / started.elapsed().as_secs_f64();
        assert_eq!(drained, self.waiting, "every job was there");
        check_settled(&self.client, &queue, self.completed + drained as u64).await;
        drop(self.server);
        rate
    }
}

/// The floor's queue, as deep.
struct DeepFloor {
    _server: Server,
    probe: MultiplexedConnection,
}

impl DeepFloor {
    /// µs per job, run by run, of each shape: of the great queue, and of the small one.
    async fn lives(plan: &Plan, shapes: &[Shape]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let mut few = Self::fill(FEW).await;
        let mut great = Self::fill(plan.waiting).await;
        let mut all = Vec::new();
        for shape in shapes {
            let (mut in_great, mut in_few) = (Vec::new(), Vec::new());
            for _ in 0..plan.runs {
                in_few.push(few.life(shape).await);
                in_great.push(great.life(shape).await);
            }
            all.push((in_great, in_few));
        }
        all
    }

    async fn fill(waiting: usize) -> Self {
        let server = Server::start().await;
        let mut probe = server.connection().await;
        for first in (0..waiting).step_by(FLOOR_FILL) {
            let made: Vec<_> = (first..waiting.min(first + FLOOR_FILL)).map(|_| job()).collect();
            floor(FLOOR_FILL).enqueue(&mut probe, &made).await.expect("the floor");
        }
        Self { _server: server, probe }
    }

    /// µs per job of enqueue, claim and complete.
    async fn life(&mut self, shape: &Shape) -> f64 {
        let (floor, before) = (floor(shape.batch), cpu(&mut self.probe).await);
        for _ in 0..shape.rounds * shape.calls {
            let made: Vec<_> = (0..shape.batch).map(|_| job()).collect();
            floor.enqueue(&mut self.probe, &made).await.expect("the floor");
            let claimed = floor.claim(&mut self.probe).await.expect("the floor");
            floor.complete(&mut self.probe, &claimed).await.expect("the floor");
        }
        (cpu(&mut self.probe).await - before) / shape.jobs() as f64
    }
}

fn floor(batch: usize) -> Floor {
    Floor { prefix: "sprag:{email}".to_owned(), batch, in_flight: batch }
}

/// A small one: the machine has to hold all of them.
fn job() -> Envelope {
    envelope(|job| job.payload(fastrand::u128(..).to_le_bytes().to_vec(), Codec::Raw))
}

fn done(id: JobId, fence: sprag::Fence) -> Complete {
    Complete { held: Held { id, fence }, result: None }
}
