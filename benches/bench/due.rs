//! A great many jobs that are due within one second, and a worker of concurrency 100 whose jobs do
//! nothing: how late each starts, how long until all have run beside as many that were pending from
//! the start, and the longest that a script held Redis up.

use crate::{
    Plan,
    jobs::{check_settled, fill_with, queue, until_empty},
    report::{Report, Row, number},
    server::{Server, longest_call, reset_longest_call, until_blocked},
};
use hdrhistogram::Histogram;
use sprag::{Client, Job, Timestamp, When, Worker, worker::Data};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const JOBS: usize = 100_000;
const SECOND: u64 = 1_000;

/// The ms at which it is due: this machine has one clock for all.
#[derive(serde::Serialize, serde::Deserialize)]
struct Due(u64);

impl Job for Due {
    const KIND: &'static str = "due";
    const QUEUE: &'static str = "email";
}

/// How late jobs were, in ms.
type Late = Arc<Mutex<Histogram<u64>>>;

async fn note(due: Due, late: Data<Late>) -> Result<(), std::convert::Infallible> {
    let wait = Timestamp::now().as_millis().saturating_sub(due.0);
    late.lock().expect("no panic").record(wait).expect("it grows");
    Ok(())
}

/// What a run came to: ms late (p50, p99, max), seconds until all had run, ms of the longest call.
struct Run {
    late: [f64; 3],
    seconds: f64,
    longest: f64,
}

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let jobs = plan.jobs(JOBS);
    let (mut all, mut pending) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        pending.push(drain(jobs, Duration::ZERO).await.seconds);
        // By then all are enqueued and the worker waits.
        all.push(drain(jobs, Duration::from_secs(plan.pick(10, 3))).await);
    }
    let figures = |figure: fn(&Run) -> f64| all.iter().map(figure).collect::<Vec<_>>();
    let name = |what| format!("{} jobs due within 1 s: {what}", number(jobs as f64));
    let row = Row::new(name("until all have run"), "s", &figures(|run| run.seconds));
    report.row(row.beside("all pending", &pending));
    report.row(Row::new(name("a job starts late, p50"), "ms", &figures(|run| run.late[0])));
    report.row(Row::new(name("a job starts late, p99"), "ms", &figures(|run| run.late[1])));
    report.row(Row::new(name("a job starts late, max"), "ms", &figures(|run| run.late[2])));
    report.row(Row::new(name("longest script call"), "ms", &figures(|run| run.longest)));
}

/// Jobs that become due within one second, so long from now; if that is no time at all they are
/// pending, and their queue is paused until all are there.
async fn drain(jobs: usize, ahead: Duration) -> Run {
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let mut probe = server.connection().await;
    let late: Late = Arc::new(Mutex::new(Histogram::new(3).expect("3 digits")));
    let inspector = client.inspector();
    inspector.pause(queue()).await.expect("pause");
    let worker = Worker::builder(&client).data(late.clone()).handler(note).concurrency(100);
    let worker = worker.build().expect("worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run_until_shutdown());
    until_blocked(&server, 1).await;
    let first = Timestamp::now().as_millis() + ahead.as_millis() as u64;
    fill_with(&**client.store(), &queue(), jobs, |i| {
        let at = first + SECOND * i as u64 / jobs as u64;
        let job = client.enqueue(Due(at));
        let job =
            if ahead.is_zero() { job } else { job.run_at(When::At(Timestamp::from_millis(at))) };
        job.envelope().expect("in bounds")
    })
    .await;
    let enqueued = Timestamp::now().as_millis();
    assert!(ahead.is_zero() || enqueued < first, "they are enqueued before they are due");
    reset_longest_call(&mut probe).await;
    let start = Instant::now() + Duration::from_millis(first.saturating_sub(enqueued));
    inspector.resume(queue()).await.expect("resume");
    until_empty(&mut probe, &queue()).await;
    let seconds = start.elapsed().as_secs_f64();
    let longest = longest_call(&mut probe).await;
    shutdown.drain();
    let completed = worker.await.expect("the worker ends well").completed;
    assert_eq!(completed, jobs as u64, "every job ran");
    check_settled(&client, &queue(), completed).await;
    let late = late.lock().expect("no panic");
    let late = [late.value_at_quantile(0.5), late.value_at_quantile(0.99), late.max()];
    Run { late: late.map(|ms| ms as f64), seconds, longest }
}
