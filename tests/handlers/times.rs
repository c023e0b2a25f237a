//! Back-off, timeout and deadline: whose word counts.

use crate::bench::{Bench, HOUR, Task, ms, run, task};
use sprag::{
    Context, Job, State, Verdict, When,
    store::EndingReason,
    worker::{CancelReason, Exponential},
};
use std::time::Duration;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Patient;

impl Job for Patient {
    const KIND: &'static str = "patient";
    const TIMEOUT: Option<Duration> = Some(ms(30));
    const DEADLINE: Option<Duration> = Some(HOUR);

    fn backoff(attempt: u32) -> Option<Duration> {
        (attempt == 1).then_some(ms(250))
    }
}

#[tokio::test]
async fn the_types_backoff_counts_before_the_workers() {
    let bench = Bench::new();
    bench.enqueue(Patient).await.expect("admitted");
    let builder = || {
        let after = |attempt| attempt * ms(1_000);
        bench.worker().backoff(after).handler(|_: Patient| async { Err::<(), _>("no") })
    };
    run(builder()).await;
    assert_eq!(bench.due_in().await, ms(250), "its own, after the first attempt");
    bench.clock.advance(ms(250));
    run(builder()).await;
    assert_eq!(bench.due_in().await, ms(2_000), "none of its own after the second");
}

#[tokio::test]
async fn an_exponential_backoff_is_given_to_a_worker() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let backoff = Exponential { base: ms(40), jitter: 0.0, ..Exponential::default() };
    let handler = |_: Task| async { Err::<(), _>("no") };
    run(bench.worker().backoff(move |attempt| backoff.after(attempt)).handler(handler)).await;
    assert_eq!(bench.due_in().await, ms(40));
}

async fn forever(_: Task) -> Result<(), Verdict> {
    std::future::pending().await
}

#[tokio::test]
async fn a_workers_timeout_is_for_jobs_that_have_none() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    run(bench.worker().timeout(ms(40)).cancel_grace(ms(1)).handler(forever)).await;
    let said = bench.told().await.2.expect("a text");
    assert_eq!(said, "timed out after 40ms: given up: timeout");
    for (job, text) in [(Some(ms(20)), "20ms"), (None, "30ms")] {
        let bench = Bench::new();
        let patient = bench.enqueue(Patient);
        job.map_or(bench.enqueue(Patient), |own| patient.timeout(own)).await.expect("admitted");
        let handler = |_: Patient| std::future::pending::<Result<(), Verdict>>();
        run(bench.worker().timeout(HOUR).cancel_grace(ms(1)).handler(handler)).await;
        let said = bench.told().await.2.expect("a text");
        assert!(said.starts_with(&format!("timed out after {text}")), "{said}");
    }
}

#[tokio::test]
async fn a_handler_that_is_told_of_its_timeout_may_still_succeed() {
    let bench = Bench::new();
    bench.enqueue(task("a")).timeout(ms(20)).await.expect("admitted");
    let handler = |_: Task, context: Context| async move {
        let why = context.cancelled().await;
        assert_eq!((why, context.cancel_reason()), (CancelReason::Timeout, Some(why)));
        assert!(context.is_cancelled() && context.cancellation_token().is_cancelled());
        Ok::<_, Verdict>(why.as_str())
    };
    run(bench.worker().cancel_grace(HOUR).handler(handler)).await;
    assert_eq!(bench.result().await, r#""timeout""#);
}

#[tokio::test]
async fn a_types_deadline_counts_from_the_enqueue() {
    let bench = Bench::new();
    bench.enqueue(Patient).await.expect("admitted");
    let deadline = |(job, at): (sprag::Envelope, sprag::Timestamp)| match job.deadline() {
        Some(When::At(deadline)) => Some(deadline.since(at)),
        _ => None,
    };
    let job = bench.job().await.envelope.expect("decodes");
    assert_eq!(deadline(job), Some(HOUR));
    bench.clock.advance(HOUR + ms(1));
    let report = run(bench.worker().handler(|_: Patient| async { Ok::<_, Verdict>(()) })).await;
    assert_eq!(report.completed, 0);
    assert_eq!(bench.ending().await.0, EndingReason::Expired);
}

#[tokio::test]
async fn a_jobs_own_deadline_counts_before_the_types() {
    let bench = Bench::new();
    bench.enqueue(Patient).deadline(When::In(2 * HOUR)).await.expect("admitted");
    bench.clock.advance(HOUR + ms(1));
    let report = run(bench.worker().handler(|_: Patient| async { Ok::<_, Verdict>(()) })).await;
    assert_eq!(report.completed, 1);
    let past = bench.client.enqueue(Patient).deadline(bench.clock.now()).await;
    assert!(matches!(past, Err(sprag::StoreError::Invalid(_))), "{past:?}");
}

#[tokio::test]
async fn a_handler_is_told_when_its_deadline_passes_and_the_job_expires() {
    let bench = Bench::new();
    bench.enqueue(task("a")).deadline(When::In(ms(30))).await.expect("admitted");
    let handler =
        |_: Task, context: Context| async move { Err::<(), _>(context.cancelled().await.as_str()) };
    let report = run(bench.worker().handler(handler)).await;
    assert_eq!((report.archived, report.retried), (1, 0));
    let (reason, said) = bench.ending().await;
    assert_eq!(reason, EndingReason::Expired);
    assert_eq!(said, "its deadline has passed: deadline");
    assert_eq!(bench.job().await.state, State::Archived);
}
