//! How long until the jobs of a worker that is killed with SIGKILL run again: ten jobs run in one
//! process, another one is idle on the same queue; from the kill to the second start of each job.
//!
//! A lease is extended at a third of its length, so between two thirds of it and all of it is left at
//! the kill, which comes at a moment drawn at random; then the next sweep sees that it is over.

use crate::{
    Plan,
    child::{Child, Settings},
    jobs::{check_settled, fill, queue, until_empty},
    report::{Report, Row},
    server::{PATIENCE, Server, until_blocked},
};
use sprag::Client;
use std::time::{Duration, Instant};

const JOBS: usize = 10;
/// The library's default, and a short one.
const LEASES: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(3)];

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    for lease in LEASES.into_iter().filter(|lease| !plan.quick || lease.as_secs() < 10) {
        let (mut medians, mut longest) = (Vec::new(), Vec::new());
        for _ in 0..plan.runs {
            let mut waits = kill(lease).await;
            waits.sort_by(f64::total_cmp);
            medians.push(waits[JOBS / 2]);
            longest.push(waits[JOBS - 1]);
        }
        let name =
            |what| format!("kill -9 of {JOBS} jobs, lease {lease:?}: {what} runs again after");
        let leases = vec![lease.as_secs_f64(); plan.runs];
        report.row(Row::new(name("the median job"), "s", &medians).beside("lease", &leases));
        report.row(Row::new(name("the last job"), "s", &longest).beside("lease", &leases));
    }
}

/// Seconds from the kill to the second start of each job.
async fn kill(lease: Duration) -> Vec<f64> {
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let lease_ms = Some(lease.as_millis() as u64);
    let settings = Settings { lease_ms, tell: true, ..Settings::default() };
    fill(&client, &queue(), JOBS).await;
    let forever = Settings { sleep_ms: 3_600_000, ..settings.clone() };
    let mut killed = Child::start(&server.url(), &forever);
    for _ in 0..JOBS {
        killed.started().await;
    }
    let mut other = Child::start(&server.url(), &settings);
    until_blocked(&server, 1).await;
    tokio::time::sleep(lease.mul_f64(fastrand::f64() / 3.0)).await;
    killed.kill().await;
    let (since, mut waits) = (Instant::now(), Vec::new());
    for _ in 0..JOBS {
        let started = tokio::time::timeout(lease + PATIENCE, other.started()).await;
        started.expect("each job runs again");
        waits.push(since.elapsed().as_secs_f64());
    }
    until_empty(&mut server.connection().await, &queue()).await;
    assert_eq!(other.end().await, JOBS as u64, "each job ran once more");
    check_settled(&client, &queue(), JOBS as u64).await;
    waits
}
