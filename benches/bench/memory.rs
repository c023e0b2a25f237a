//! Bytes of Redis' memory per job that waits, and per job that runs, beside the floor's.

use crate::{
    Plan,
    jobs::{check_settled, envelopes, queue},
    report::{Report, Row},
    server::{Floor, Server, flush, used_memory},
};
use redis::aio::MultiplexedConnection;
use sprag::{
    Client, WorkerId,
    store::{Complete, Held},
};
use std::time::Duration;

const JOBS: usize = 30_720;
const BATCH: usize = 256;
const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    // Not fewer with `--quick`: what a table takes goes by powers of two.
    let (mut ours, mut floors) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..plan.runs {
        let server = Server::start().await;
        let mut probe = server.connection().await;
        let floor = floor(&mut probe).await;
        flush(&mut probe).await;
        let client = Client::connect(&server.url()).expect("client");
        let bytes = bytes(&client, &mut probe).await;
        check_settled(&client, &queue(), JOBS as u64).await;
        for i in [0, 1] {
            ours[i].push(bytes[i]);
            floors[i].push(floor[i]);
        }
    }
    for (i, what) in ["waiting", "running"].into_iter().enumerate() {
        let name = format!("a {what} job of 220 bytes");
        report.row(Row::new(name, "bytes", &ours[i]).beside("floor", &floors[i]));
    }
}

/// Per waiting and per running job.
async fn bytes(client: &Client, probe: &mut MultiplexedConnection) -> [f64; 2] {
    let (store, queue) = (client.store(), queue());
    let worker = WorkerId::new("bench:1").expect("worker");
    let before = used_memory(probe).await;
    for _ in 0..JOBS / BATCH {
        let outcomes = store.enqueue(&queue, &envelopes(BATCH)).await.expect("enqueue");
        assert!(outcomes.iter().all(Result::is_ok), "all are admitted");
    }
    let waiting = per_job(before, used_memory(probe).await);
    let mut held = Vec::new();
    while held.len() < JOBS {
        let claim = store.claim(&queue, &worker, BATCH, HOUR).await.expect("claim");
        held.extend(claim.jobs.into_iter().map(|job| Held { id: job.id, fence: job.fence }));
    }
    let running = per_job(before, used_memory(probe).await);
    for held in held.chunks(BATCH) {
        let complete = |held: &Held| Complete { held: held.clone(), result: None };
        let done: Vec<_> = held.iter().map(complete).collect();
        store.complete(&queue, &done).await.expect("complete");
    }
    [waiting, running]
}

async fn floor(probe: &mut MultiplexedConnection) -> [f64; 2] {
    let floor = Floor { prefix: "sprag:{email}".to_owned(), batch: BATCH, in_flight: BATCH };
    let before = used_memory(probe).await;
    for _ in 0..JOBS / BATCH {
        floor.enqueue(probe, &envelopes(BATCH)).await.expect("the floor");
    }
    let waiting = per_job(before, used_memory(probe).await);
    while !floor.claim(probe).await.expect("the floor").iter().all(Vec::is_empty) {}
    [waiting, per_job(before, used_memory(probe).await)]
}

fn per_job(before: u64, after: u64) -> f64 {
    after.saturating_sub(before) as f64 / JOBS as f64
}
