//! 200 worker processes on one queue: what each sends while idle, what all of them cost Redis then,
//! and jobs per second that they drain, beside four.

use crate::{
    Plan,
    child::Settings,
    drain::Site,
    report::{Report, Row},
    server::{Server, cpu},
};
use std::time::{Duration, Instant};

const PROCESSES: usize = 200;
const FEW: usize = 4;
const JOBS: usize = 50_000;
/// Past their first seconds.
const SETTLE: Duration = Duration::from_secs(3);

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let (mut many, mut few) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        few.push(measure(plan, FEW).await);
        many.push(measure(plan, PROCESSES).await);
    }
    let figures =
        [("idle, sent by each", "commands/s"), ("idle, Redis' CPU", "%"), ("drain", "jobs/s")];
    for (i, (what, unit)) in figures.into_iter().enumerate() {
        let of = |all: &[[f64; 3]]| all.iter().map(|run| run[i]).collect::<Vec<_>>();
        let row = Row::new(format!("{PROCESSES} worker processes: {what}"), unit, &of(&many));
        report.row(row.beside("4 processes", &of(&few)));
    }
}

/// Commands per second and worker and percent of a CPU while idle; then jobs per second.
async fn measure(plan: &Plan, processes: usize) -> [f64; 3] {
    let server = Server::start().await;
    let settings = Settings { threads: 1, ..Settings::default() };
    let jobs = plan.jobs(JOBS);
    // Paused: there are jobs, and nothing to do.
    let mut site = Site::open(&server, jobs, processes, &settings).await;
    let mut probe = server.connection().await;
    tokio::time::sleep(SETTLE).await;
    let seconds = plan.pick(10, 3);
    let window = Duration::from_secs(seconds);
    // Not while MONITOR listens, which costs more than what it hears.
    let before = cpu(&mut probe).await;
    tokio::time::sleep(window).await;
    let used = cpu(&mut probe).await - before;
    let sent: u64 = server.sent_within(window).await.values().sum();
    let started = Instant::now();
    site.drain().await;
    let rate = jobs as f64 / started.elapsed().as_secs_f64();
    site.close().await;
    [sent as f64 / seconds as f64 / processes as f64, used / seconds as f64 / 1e4, rate]
}
