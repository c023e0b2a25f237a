//! `run_until_empty`: a worker without loops, for tests and for programs that a timer starts.

use crate::bench::{Bench, HOUR, Log, Task, ms, run, task};
use sprag::{Context, State, Verdict, worker::Attempt};

#[tokio::test]
async fn it_runs_what_is_there_and_what_that_enqueues_and_returns() {
    let bench = Bench::new();
    bench.client.enqueue(task("3")).await.expect("admitted");
    let countdown = |Task(left): Task, context: Context| async move {
        if let Some(less) = left.parse::<u64>()?.checked_sub(1) {
            context.client().enqueue(task(&less.to_string())).await?;
        }
        Ok::<_, sprag::worker::BoxError>(())
    };
    assert_eq!(run(bench.worker().handler(countdown)).await.completed, 4);
    assert_eq!(run(bench.worker().handler(countdown)).await.completed, 0, "nothing is left");
}

#[tokio::test]
async fn what_is_due_later_waits_for_the_clock_and_each_report_is_of_one_call() {
    let bench = Bench::new();
    bench.enqueue(task("a")).delay(HOUR).await.expect("admitted");
    let handler = |_: Task, Attempt(attempt): Attempt| async move {
        if attempt == 0 { Err("not yet") } else { Ok(()) }
    };
    let mut worker = bench.worker().handler(handler).build().expect("a worker");
    assert_eq!(worker.run_until_empty().await, Ok(sprag::Report::default()));
    bench.clock.advance(HOUR);
    let report = worker.run_until_empty().await.expect("in memory");
    assert_eq!((report.retried, report.completed), (1, 0));
    assert_eq!(bench.told().await.0, State::Retry);
    bench.clock.advance(HOUR);
    let report = worker.run_until_empty().await.expect("in memory");
    assert_eq!((report.retried, report.completed), (0, 1));
    assert_eq!(bench.job().await.state, State::Completed);
}

#[tokio::test]
async fn a_worker_that_was_told_to_stop_runs_nothing() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let handler = |_: Task| async { Ok::<_, Verdict>(()) };
    let mut worker = bench.worker().handler(handler).build().expect("a worker");
    worker.shutdown().quiet();
    assert_eq!(worker.run_until_empty().await.expect("in memory").completed, 0);
}

#[tokio::test]
async fn dropped_it_lets_go_of_the_job_in_hand() {
    let (bench, log) = (Bench::new(), Log::default());
    bench.enqueue(task("a")).await.expect("admitted");
    let handler = {
        let log = log.clone();
        let clock = bench.clock.clone();
        move |Task(name): Task, context: Context| {
            let (log, clock) = (log.clone(), clock.clone());
            async move {
                if name == "b" {
                    Bench::until_leases_were_looked_at(context.client(), clock.now()).await;
                } else if context.crash() == 0 {
                    log.add("first");
                    log.add(context.cancelled().await.as_str());
                }
                Ok::<_, Verdict>(())
            }
        }
    };
    let mut worker = bench.worker().handler(handler).build().expect("a worker");
    tokio::select! {
        report = worker.run_until_empty() => panic!("ended: {report:?}"),
        () = async {
            while log.all().is_empty() { tokio::time::sleep(ms(1)).await }
            // Else this call's own first extension may still come, after the clock was moved.
            Bench::until_leases_were_looked_at(&bench.client, bench.clock.now()).await;
            // tokio's first tick may be a millisecond later than that look.
            tokio::time::sleep(ms(50)).await;
        } => {}
    }
    // A later call does not extend it.
    bench.clock.advance(ms(20_000));
    bench.client.enqueue(task("b")).await.expect("admitted");
    assert_eq!(worker.run_until_empty().await.expect("in memory").completed, 1);
    bench.clock.advance(ms(10_001));
    assert_eq!(worker.run_until_empty().await.expect("in memory").completed, 1);
    assert_eq!(log.all(), ["first", "shutdown"]);
    assert_eq!(bench.job().await.crash, 1);
}
