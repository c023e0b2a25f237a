//! One queue on one server, beside two queues on two servers of their own, drained by two worker
//! processes in all: throughput grows with servers as far as this machine has cores for them.

use crate::{
    Plan,
    child::Settings,
    drain,
    report::{Report, Row},
    server::Server,
};

const JOBS: usize = 200_000;
const PROCESSES: usize = 2;

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let settings = Settings { concurrency: 100, ..Settings::default() };
    let (jobs, mut one, mut two) = (plan.jobs(JOBS), Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        let servers = [Server::start().await];
        one.push(drain::rate(&servers, jobs, PROCESSES, &settings).await);
        let servers = [Server::start().await, Server::start().await];
        two.push(drain::rate(&servers, jobs, PROCESSES, &settings).await);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let name = format!("drain, 2 servers, 2 worker processes, {cores} cores");
    report.row(Row::new(name, "jobs/s", &two).beside("1 server", &one));
}
