//! A handler is told to stop, and why.

use crate::bench::{
    Answer, Bench, HOUR, Log, Task, Working, default_queue, id, ms, succeed, until_cancelled,
    worker,
};
use futures_util::future::BoxFuture;
use sprag::{
    Codec, Context, Envelope, Job, Kind, State, Verdict, When,
    store::{EndingReason, Pace},
    worker::{CancelReason, WorkerBuilder},
};
use std::time::Instant;

/// Says why it is told to stop, and then fails.
fn says_why(log: &Log) -> impl Fn(Task, Context) -> BoxFuture<'static, Answer> + Clone + use<> {
    let log = log.clone();
    move |_, context| {
        let log = log.clone();
        Box::pin(async move {
            let reason = context.cancelled().await;
            log.add(&format!("told {reason}"));
            assert_eq!((context.cancel_reason(), context.is_cancelled()), (Some(reason), true));
            Err(Verdict::retry_in(HOUR, "stopped"))
        })
    }
}

/// A job `a` whose deadline is that near.
async fn enqueue_with_deadline(bench: &Bench, deadline: std::time::Duration) {
    let job = Envelope::builder(default_queue(), Kind::new(Task::KIND).expect("kind"))
        .id(id("a"))
        .payload("\"a\"", Codec::Json)
        .deadline(When::In(deadline));
    let outcomes = bench.client.enqueue_envelopes(&[job.build().expect("job")]).await;
    assert!(outcomes.expect("enqueue")[0].is_ok());
}

#[tokio::test]
async fn each_reason_is_told_and_only_a_timeout_or_a_deadline_spends_an_attempt() {
    use CancelReason::{Deadline, LeaseLost, Shutdown, Timeout};
    for (reason, state, attempt) in [
        (Timeout, State::Retry, 1),
        (Deadline, State::Archived, 1),
        (Shutdown, State::Pending, 0),
        (LeaseLost, State::Pending, 0),
    ] {
        let (bench, log) = (Bench::new().await, Log::new());
        let builder = worker(&bench.client, &log, says_why(&log)).grace(ms(1)).lease(ms(600));
        let working = Working::start(builder);
        match reason {
            Timeout => drop(bench.task("a").timeout(ms(100)).await.expect("admitted")),
            Deadline => enqueue_with_deadline(&bench, ms(300)).await,
            _ => bench.enqueue(&["a"]).await,
        }
        log.wait("start a", 1).await;
        match reason {
            Shutdown => working.shutdown.drain(),
            LeaseLost => {
                bench
                    .client
                    .store()
                    .set(&default_queue(), &[sprag::store::Setting::Paused(true)])
                    .await
                    .expect("paused");
                bench.take_away("a").await;
            }
            _ => {}
        }
        log.wait("told", 1).await;
        working.stop().await;
        assert_eq!(log.all(), ["start a".to_owned(), format!("told {reason}")]);
        let job = bench.show("a").await;
        assert_eq!((job.state, job.attempt), (state, attempt), "{reason}");
    }
}

#[tokio::test]
async fn a_success_after_the_timeout_completes_and_the_first_reason_stays() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = {
        let log = log.clone();
        move |_, context: Context| {
            let log = log.clone();
            async move {
                log.add(&format!("told {}", context.cancelled().await));
                // Meanwhile the worker's grace ends.
                tokio::time::sleep(ms(300)).await;
                log.add(&format!("still {}", context.cancel_reason().expect("told")));
                Ok(())
            }
        }
    };
    let builder = worker(&bench.client, &log, handler).grace(ms(1)).cancel_grace(ms(10_000));
    let working = Working::start(builder.timeout(ms(100)));
    bench.enqueue(&["a"]).await;
    log.wait("told", 1).await;
    let report = working.stop().await;
    assert_eq!(log.all(), ["start a", "told timeout", "still timeout"]);
    assert_eq!((report.completed, report.retried, report.lost), (1, 0, 0));
    assert_eq!(bench.info().await.completed_today, 1);
}

#[tokio::test]
async fn a_job_that_ignores_its_deadline_ends_archived_expired() {
    let (bench, log) = (Bench::new().await, Log::new());
    let builder = worker(&bench.client, &log, |_, _| std::future::pending());
    let working = Working::start(builder.cancel_grace(ms(100)));
    enqueue_with_deadline(&bench, ms(300)).await;
    bench.until("it to be given up", |info| info.archived == 1).await;
    let job = bench.show("a").await;
    assert_eq!(job.ending.expect("ended").reason, EndingReason::Expired);
    assert_eq!((working.stop().await.archived, bench.info().await.unfinished), (1, 0));
}

#[tokio::test]
async fn a_handler_that_goes_on_is_dropped_after_its_grace_and_the_next_job_starts() {
    /// Tells when it is dropped.
    struct Dropped(Log);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.add("dropped");
        }
    }
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = {
        let log = log.clone();
        move |task: Task, context: Context| {
            let log = log.clone();
            async move {
                if task.0 == "next" {
                    return Ok(());
                }
                let _dropped = Dropped(log.clone());
                context.cancelled().await;
                log.add("told");
                std::future::pending().await
            }
        }
    };
    let builder = worker(&bench.client, &log, handler).concurrency(1).backoff(|_| HOUR);
    let working = Working::start(builder.cancel_grace(ms(400)));
    bench.task("a").timeout(ms(100)).await.expect("admitted");
    bench.enqueue(&["next"]).await;
    let told = log.wait("told", 1).await;
    let dropped = log.wait("dropped", 1).await - told;
    assert!((ms(380)..ms(1_400)).contains(&dropped), "{dropped:?}");
    log.wait("start next", 1).await;
    let report = working.stop().await;
    assert_eq!((report.completed, report.retried, report.runaways), (1, 1, 0));
    assert_eq!(log.all(), ["start a", "told", "dropped", "start next"]);
}

/// CASES 5: the same whatever the operator does to the job.
#[tokio::test]
async fn a_push_tells_a_handler_of_the_operator_within_a_tenth_of_a_second() {
    use sprag::store::Operation::{Archive, Cancel};
    for operation in [Cancel, Archive] {
        let (bench, log) = (Bench::new().await, Log::new());
        // An extension would come too late.
        let builder: WorkerBuilder = worker(&bench.client, &log, says_why(&log)).lease(HOUR);
        let working = Working::start(builder.grace(ms(1)));
        bench.until_listening().await;
        let mut delays = Vec::new();
        for (i, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            bench.enqueue(&[name]).await;
            log.wait(&format!("start {name}"), 1).await;
            bench.operate(operation, name).await;
            let operated = Instant::now();
            let told = log.wait("told operator", i + 1).await;
            delays.push(told.saturating_duration_since(operated));
        }
        // One may be hit by another process's burst of work.
        delays.sort();
        assert!(delays[2] < ms(100), "{delays:?}");
        let report = working.stop().await;
        assert_eq!((report.lost, report.retried, log.count("told")), (5, 0, 5));
        assert_eq!((bench.info().await.unfinished, bench.show("a").await.attempt), (0, 0));
    }
}

#[tokio::test]
async fn a_job_that_is_reclaimed_while_another_worker_is_idle_runs_there() {
    let (bench, log) = (Bench::new().await, Log::new());
    let first = Working::start(
        worker(&bench.client, &log, until_cancelled).lease(HOUR).grace(ms(1)).concurrency(1),
    );
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    let second = Working::start(worker(&bench.other_client(), &log, succeed));
    bench.until_blocked(1).await;
    bench.run::<()>(&["ZADD", "sprag:{default}:active", "XX", "1", "a"]).await;
    let swept = bench.client.store().sweep(&default_queue(), Pace::Now).await.expect("sweep");
    assert_eq!(swept.reclaimed, 1);
    log.wait("start a", 2).await;
    bench.until_done().await;
    assert_eq!(second.stop().await.completed, 1);
    assert_eq!(first.stop().await.lost, 1);
}
