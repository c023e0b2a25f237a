//! CPU of the processes that use the library, per job, beside what the same work costs Redis: 64
//! producers with one job each, and a worker whose jobs do nothing. As Linux counts it, in ticks of 10 ms.

use crate::{
    Plan,
    child::Settings,
    drain::Site,
    report::{Report, Row},
    server::{Aof, cpu},
    throughput::{produce, work_off},
};
use sprag::Client;

const PRODUCERS: usize = 64;
const JOBS: usize = 100_000;
const US_PER_TICK: f64 = 10_000.0;

pub(crate) async fn run(plan: &Plan, report: &mut Report) {
    if process_cpu("self").is_none() {
        println!("client: CPU of processes is only read on Linux");
        return;
    }
    let jobs = plan.jobs(JOBS);
    let (mut producers, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs {
        let server = Aof::Off.start().await;
        let mut probe = server.connection().await;
        let client = Client::connect(&server.url()).expect("client");
        let before = (spent("self"), cpu(&mut probe).await);
        produce(&client, jobs, PRODUCERS).await;
        producers.push((spent("self") - before.0) / jobs as f64);
        beside.push((cpu(&mut probe).await - before.1) / jobs as f64);
        work_off(&server, &client, jobs).await;
    }
    report.row(
        Row::new("enqueue, 64 in flight", "µs of the client's CPU", &producers)
            .beside("Redis", &beside),
    );
    for concurrency in [1, 10, 100] {
        let jobs = if concurrency == 1 { jobs / 5 } else { jobs };
        let (mut workers, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..plan.runs {
            let server = Aof::Off.start().await;
            let mut probe = server.connection().await;
            let settings = Settings { concurrency, ..Settings::default() };
            let mut site = Site::open(&server, jobs, 1, &settings).await;
            let pid = site.pids()[0].to_string();
            let before = (spent(&pid), cpu(&mut probe).await);
            site.drain().await;
            workers.push((spent(&pid) - before.0) / jobs as f64);
            beside.push((cpu(&mut probe).await - before.1) / jobs as f64);
            site.close().await;
        }
        let name = format!("drain, concurrency {concurrency}");
        report.row(Row::new(name, "µs of the worker's CPU", &workers).beside("Redis", &beside));
    }
}

/// µs of CPU that a process has used.
fn spent(pid: &str) -> f64 {
    process_cpu(pid).expect("it lives")
}

fn process_cpu(pid: &str) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, in parentheses, may have spaces; utime and stime are the 14th and 15th.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) * US_PER_TICK)
}
