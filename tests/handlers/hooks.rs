//! What a worker's owner is told of jobs that ended without success.

use crate::bench::{Bench, HOUR, Log, Task, id, ms, queue, run, task};
use sprag::{
    Codec, Kind, State, Verdict, When,
    store::{EndingReason, Setting},
    worker::{EndedJob, WorkerBuilder},
};
use std::sync::{Arc, Mutex};

/// A worker that remembers what its hooks were told.
fn told(builder: WorkerBuilder) -> (WorkerBuilder, Arc<Mutex<Vec<EndedJob>>>) {
    let told = Arc::<Mutex<Vec<EndedJob>>>::default();
    let hook = |told: Arc<Mutex<Vec<EndedJob>>>| {
        move |job: EndedJob| {
            told.lock().expect("no panic in it").push(job);
            async {}
        }
    };
    (builder.on_archive(hook(told.clone())).on_quarantine(hook(told.clone())), told)
}

async fn run_and_told(builder: WorkerBuilder) -> EndedJob {
    let (builder, told) = told(builder);
    run(builder).await;
    let mut told = told.lock().expect("no panic in it");
    assert_eq!(told.len(), 1, "{told:?}");
    told.remove(0)
}

fn kind(name: &str) -> Option<Kind> {
    Some(Kind::new(name).expect("kind"))
}

#[tokio::test]
async fn on_archive_is_told_of_what_a_handler_ended_and_why() {
    let handler = |Task(what): Task| async move {
        Err::<(), _>(match what.as_str() {
            "discarded" => Verdict::discard("no use"),
            "undecodable" => Verdict::undecodable("no use"),
            "expired" => Verdict::retry_in(2 * HOUR, "no use"),
            _ => Verdict::retry_in(ms(1), "no use"),
        })
    };
    for (name, reason) in [
        ("discarded", EndingReason::Discarded),
        ("undecodable", EndingReason::Undecodable),
        ("exhausted", EndingReason::Exhausted),
        ("expired", EndingReason::Expired),
    ] {
        let bench = Bench::new();
        let job = bench.enqueue(task(name)).deadline(When::In(HOUR));
        let attempts = if name == "exhausted" { 1 } else { 25 };
        job.max_attempts(attempts).await.expect("admitted");
        let ended = run_and_told(bench.worker().handler(handler)).await;
        assert_eq!((ended.queue, ended.id, ended.kind), (queue(), id("a"), kind("task")));
        assert_eq!((ended.state, ended.reason), (State::Archived, reason), "{name}");
        assert_eq!(ended.error.as_deref(), Some("no use"));
        assert_eq!(bench.ending().await.0, reason, "as it is shown");
    }
}

#[tokio::test]
async fn on_archive_is_told_of_a_payload_that_cannot_be_decoded() {
    let bench = Bench::new();
    bench.enqueue_raw("task", 1, &[0xc1], Codec::MsgPack).await;
    let ended =
        run_and_told(bench.worker().handler(|_: Task| async { Ok::<_, Verdict>(()) })).await;
    assert_eq!((ended.reason, ended.kind), (EndingReason::Undecodable, kind("task")));
    assert!(ended.error.is_some_and(|said| !said.is_empty()));
}

#[tokio::test]
async fn on_archive_is_told_of_a_job_that_the_sweep_found_expired() {
    let bench = Bench::new();
    bench.enqueue(task("a")).delay(HOUR).deadline(When::In(ms(10))).await.expect("admitted");
    bench.clock.advance(ms(11));
    let ended =
        run_and_told(bench.worker().handler(|_: Task| async { Ok::<_, Verdict>(()) })).await;
    assert_eq!((ended.state, ended.reason), (State::Archived, EndingReason::Expired));
    assert_eq!((ended.id, ended.kind, ended.error), (id("a"), None, None));
}

#[tokio::test]
async fn on_quarantine_is_told_of_a_job_that_killed_its_worker() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let store = bench.client.store();
    store.set(&queue(), &[Setting::CrashLimit(Some(1))]).await.expect("set");
    let dead = sprag::WorkerId::new("dead:1").expect("id");
    assert_eq!(store.claim(&queue(), &dead, 1, ms(100)).await.expect("claim").jobs.len(), 1);
    bench.clock.advance(ms(101));
    let ended =
        run_and_told(bench.worker().handler(|_: Task| async { Ok::<_, Verdict>(()) })).await;
    assert_eq!((ended.state, ended.reason), (State::Quarantined, EndingReason::Quarantined));
}

#[tokio::test]
async fn success_and_a_retry_are_told_to_nobody() {
    let bench = Bench::new();
    bench.client.enqueue(task("good")).await.expect("admitted");
    bench.enqueue(task("bad")).await.expect("admitted");
    let handler = |Task(name): Task| async move { if name == "bad" { Err("no") } else { Ok(()) } };
    let (builder, told) = told(bench.worker().handler(handler));
    let report = run(builder).await;
    assert_eq!((report.completed, report.retried), (1, 1));
    assert!(told.lock().expect("no panic in it").is_empty());
}

#[tokio::test]
async fn a_hook_that_panics_harms_nobody() {
    let (bench, log) = (Bench::new(), Log::default());
    for name in ["a", "b", "c"] {
        bench.client.enqueue(task(name)).id(name).await.expect("admitted");
    }
    let handler = |_: Task| async { Err::<(), _>(Verdict::discard("no use")) };
    let hook = {
        let log = log.clone();
        move |job: EndedJob| {
            log.add(job.id.as_str());
            assert_ne!(job.id.as_str(), "a", "at once");
            async move { assert_ne!(job.id.as_str(), "b", "when awaited") }
        }
    };
    let report = run(bench.worker().handler(handler).on_archive(hook)).await;
    assert_eq!((report.archived, log.all().len()), (3, 3));
}

#[tokio::test]
async fn a_hook_that_never_ends_is_not_waited_for() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let handler = |_: Task| async { Err::<(), _>(Verdict::discard("no use")) };
    let builder = bench.worker().handler(handler).on_archive(|_| std::future::pending());
    assert_eq!(run(builder).await.archived, 1);
}
