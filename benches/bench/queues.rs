//! One worker of concurrency 100 on 1,000 queues: jobs per second that it drains, beside as many
//! jobs in one queue; how soon it is idle then, and what it sends and costs while it is.

use crate::{
    Plan,
    jobs::{Task, check_settled, fill, until_empty},
    report::{Report, Row, number},
    server::{Server, cpu, until_blocked},
};
use sprag::{Client, QueueName, Worker, worker::Shutdown};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const QUEUES: usize = 1_000;
const JOBS: usize = 100_000;
/// Past its first seconds, in which it learns what is there.
const SETTLE: Duration = Duration::from_secs(3);
const FIGURES: [(&str, &str); 4] = [
    ("drain", "jobs/s"),
    ("idle after the last job", "s later"),
    ("idle, sent", "commands/s"),
    ("idle, Redis' CPU", "%"),
];

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    let (queues, jobs) = (plan.pick(QUEUES, QUEUES / 10), plan.jobs(JOBS));
    let (mut many, mut one) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        one.push(measure(1, jobs, plan.pick(10, 3)).await);
        many.push(measure(queues, jobs, plan.pick(10, 3)).await);
    }
    for (i, (what, unit)) in FIGURES.into_iter().enumerate() {
        let of = |all: &[[f64; 4]]| all.iter().map(|run| run[i]).collect::<Vec<_>>();
        let name = format!("1 worker on {} queues: {what}", number(queues as f64));
        report.row(Row::new(name, unit, &of(&many)).beside("1 queue", &of(&one)));
    }
}

fn name(i: usize) -> QueueName {
    QueueName::new(format!("queue-{i}")).expect("queue")
}

/// A worker on so many queues.
fn work(client: &Client, queues: usize) -> (Shutdown, JoinHandle<sprag::Report>) {
    let handler = |_: Task| async { Ok::<_, std::convert::Infallible>(()) };
    let mut worker = Worker::builder(client).handler(handler).concurrency(100);
    for i in 0..queues {
        worker = worker.queue(name(i));
    }
    let worker = worker.build().expect("worker");
    (worker.shutdown(), tokio::spawn(worker.run_until_shutdown()))
}

/// Jobs per second, the worker's start included; how long until it has nothing to do; then what it
/// sends per second, and percent of a CPU that it makes Redis use.
async fn measure(queues: usize, jobs: usize, seconds: u64) -> [f64; 4] {
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let each = jobs / queues;
    for i in 0..queues {
        fill(&client, &name(i), each).await;
    }
    let mut probe = server.connection().await;
    let started = Instant::now();
    let (shutdown, worker) = work(&client, queues);
    for i in 0..queues {
        until_empty(&mut probe, &name(i)).await;
    }
    let rate = (each * queues) as f64 / started.elapsed().as_secs_f64();
    let drained = Instant::now();
    until_blocked(&server, 1).await;
    let idle_after = drained.elapsed().as_secs_f64();

    tokio::time::sleep(SETTLE).await;
    let window = Duration::from_secs(seconds);
    // Not while MONITOR listens, which costs more than what it hears.
    let before = cpu(&mut probe).await;
    tokio::time::sleep(window).await;
    let used = cpu(&mut probe).await - before;
    let sent: u64 = server.sent_within(window).await.values().sum();
    shutdown.drain();
    let completed = worker.await.expect("the worker ends well").completed;
    assert_eq!(completed as usize, each * queues, "every job ran");
    for i in 0..queues {
        check_settled(&client, &name(i), each as u64).await;
    }
    let per_second = |all: f64| all / seconds as f64;
    [rate, idle_after, per_second(sent as f64), per_second(used) / 1e4]
}
