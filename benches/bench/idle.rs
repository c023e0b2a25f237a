//! What an idle worker sends: commands of a client, as MONITOR sees them. What scripts do inside is
//! not among them. It misses its bar if one of one queue sends more than 2 a second, and 1 for each
//! further queue.

use crate::{
    Plan,
    jobs::Task,
    report::{Report, Row},
    server::{Server, until_blocked},
};
use futures_util::future::join_all;
use sprag::{Client, Worker};
use std::time::Duration;

/// Twice as long as the longest of its pauses.
const WINDOW: Duration = Duration::from_secs(10);
/// Past its first seconds, in which it learns what is there.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    for queues in [1, 4] {
        // All runs at once: whoever is idle is in nobody's way.
        let rates = join_all((0..plan.runs).map(|_| idle(queues))).await;
        let bar = 2.0 + (queues - 1) as f64;
        let worst = rates.iter().copied().fold(0.0, f64::max);
        report.row(Row::new(format!("queues of the worker: {queues}"), "commands/s", &rates));
        report.require(worst <= bar, format!("{queues} queues: {worst} commands/s, bar {bar}"));
    }
}

async fn idle(queues: usize) -> f64 {
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let handler = |_: Task| async { Ok::<_, std::convert::Infallible>(()) };
    let mut worker = Worker::builder(&client).handler(handler);
    for i in 0..queues {
        worker = worker.queue(format!("queue-{i}"));
    }
    let worker = worker.build().expect("worker");
    let shutdown = worker.shutdown();
    tokio::spawn(worker.run_until_shutdown());
    until_blocked(&server, 1).await;
    tokio::time::sleep(SETTLE).await;
    let sent = server.sent_within(WINDOW).await;
    shutdown.drain();
    sent.values().sum::<u64>() as f64 / WINDOW.as_secs_f64()
}
