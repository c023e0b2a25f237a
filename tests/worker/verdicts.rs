//! What a run comes to.

use crate::bench::{Answer, Bench, HOUR, Log, Task, Working, default_queue, id, ms, worker};
use sprag::{
    Codec, Context, Envelope, Job, JobId, Kind, State, Verdict, Worker, store::EndingReason,
};
use std::future::Future;

/// Runs the job `a` once by this handler; the bench to look at what came of it.
async fn after_one_run<Fut: Future<Output = Answer> + Send + 'static>(
    handler: impl Fn(Task, Context) -> Fut + Clone + Send + Sync + 'static,
) -> (Bench, Log) {
    let (bench, log) = (Bench::new().await, Log::new());
    let builder = worker(&bench.client, &log, handler).backoff(|_| HOUR);
    Working::start(builder);
    bench.task("a").timeout(ms(200)).await.expect("admitted");
    log.wait("start a", 1).await;
    bench.until("it to be settled", |info| info.active + info.pending == 0).await;
    (bench, log)
}

/// CASES 17.
#[tokio::test]
async fn a_panic_is_a_failed_attempt_with_its_text_and_frees_the_slot() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |task: Task, _| async move {
        assert_ne!(task.0, "bad", "no good");
        Ok(())
    };
    let builder = worker(&bench.client, &log, handler).backoff(|_| HOUR).concurrency(1);
    let working = Working::start(builder);
    bench.enqueue(&["bad", "good"]).await;
    log.wait("start good", 1).await;
    bench.until("both to be settled", |info| info.active + info.pending == 0).await;
    let job = bench.show("bad").await;
    assert_eq!((job.state, job.attempt, job.crash, job.holder), (State::Retry, 1, 0, None));
    let said = job.errors[0].error.clone().expect("a text");
    assert!(said.starts_with("panicked: ") && said.contains("no good"), "{said}");
    let report = working.stop().await;
    assert_eq!((report.completed, report.retried), (1, 1));
}

#[tokio::test]
async fn a_timeout_ends_the_attempt() {
    let (bench, _) = after_one_run(|_, _| std::future::pending()).await;
    let job = bench.show("a").await;
    assert_eq!((job.state, job.attempt), (State::Retry, 1));
    let said = job.errors[0].error.as_deref().expect("a text");
    assert!(said.contains("timed out after 200ms"), "{said}");
}

#[tokio::test]
async fn retry_in_sets_the_delay_and_counts_the_attempt() {
    let (bench, _) =
        after_one_run(|_, _| async { Err(Verdict::retry_in(2 * HOUR, "not yet")) }).await;
    let job = bench.show("a").await;
    assert_eq!((job.state, job.attempt), (State::Retry, 1));
    assert_eq!(job.errors[0].error.as_deref(), Some("not yet"));
    let due = job.due_at.expect("due").as_millis() - job.errors[0].at.as_millis();
    assert_eq!(due, 2 * HOUR.as_millis() as u64);
}

#[tokio::test]
async fn discard_archives_at_once() {
    let (bench, _) = after_one_run(|_, _| async { Err(Verdict::discard("no use")) }).await;
    let job = bench.show("a").await;
    assert_eq!(job.state, State::Archived);
    assert_eq!(job.ending.expect("ended").reason, EndingReason::Discarded);
    assert_eq!(job.errors[0].error.as_deref(), Some("no use"));
    assert_eq!(bench.info().await.unfinished, 0);
}

#[tokio::test]
async fn snooze_puts_off_and_counts_nothing() {
    let (bench, _) = after_one_run(|_, _| async { Err(Verdict::snooze(HOUR)) }).await;
    let job = bench.show("a").await;
    assert_eq!((job.state, job.attempt, job.errors.len()), (State::Scheduled, 0, 0));
}

#[tokio::test]
async fn a_job_that_failed_as_often_as_it_may_is_archived() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = |_, context: Context| async move {
        Err(Verdict::retry_in(ms(1), format!("attempt {}", context.attempt())))
    };
    let working = Working::start(worker(&bench.client, &log, handler));
    bench.task("a").max_attempts(3).await.expect("admitted");
    bench.until("it to be given up", |info| info.archived == 1).await;
    let job = bench.show("a").await;
    assert_eq!((job.attempt, job.ending.expect("ended").reason), (3, EndingReason::Exhausted));
    let said: Vec<_> = job.errors.iter().filter_map(|failure| failure.error.as_deref()).collect();
    assert_eq!(said, ["attempt 0", "attempt 1", "attempt 2"]);
    let report = working.stop().await;
    assert_eq!((log.count("start"), report.retried, report.archived), (3, 2, 1));
    assert_eq!(bench.info().await.unfinished, 0);
}

#[tokio::test]
async fn a_payload_that_cannot_be_decoded_is_archived_at_once_with_its_reason() {
    let (bench, log) = (Bench::new().await, Log::new());
    let _working = Working::start(worker(&bench.client, &log, crate::bench::succeed));
    let job = Envelope::builder(default_queue(), Kind::new(Task::KIND).expect("kind"))
        .id(id("a"))
        .payload(vec![0xc1], Codec::MsgPack)
        .build();
    bench.client.enqueue_envelopes(&[job.expect("job")]).await.expect("enqueue");
    bench.until("it to be given up", |info| info.archived == 1).await;
    let job = bench.show("a").await;
    assert_eq!((job.attempt, job.ending.expect("ended").reason), (0, EndingReason::Undecodable));
    assert!(job.errors[0].error.as_deref().is_some_and(|said| !said.is_empty()));
    assert!(log.all().is_empty());
}

#[tokio::test]
async fn a_result_is_kept_as_long_as_its_job_is() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Sum(u64, u64);
    impl Job for Sum {
        const KIND: &'static str = "sum";
    }
    let bench = Bench::new().await;
    let handler = |Sum(a, b), _: Context| async move { Ok::<_, std::io::Error>(a + b) };
    let working = Working::start(Worker::builder(&bench.client).handler(handler));
    bench.client.enqueue(Sum(1, 2)).id(id("kept")).retention(HOUR).await.expect("admitted");
    bench.client.enqueue(Sum(3, 4)).id(id("gone")).await.expect("admitted");
    bench.until_done().await;
    let job = bench.show("kept").await;
    assert_eq!((job.state, job.result.as_deref()), (State::Completed, Some(&b"3"[..])));
    let find = |name: &str| JobId::new(name).expect("id");
    assert!(bench.client.store().show(&default_queue(), &find("gone")).await.is_err());
    assert_eq!(working.stop().await.completed, 2);
}
