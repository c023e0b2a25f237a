//! What a producer says of a job, and what its type says for it.

use crate::bench::{Bench, HOUR, Task, id, run, task};
use sprag::{Envelope, StoreError, Verdict, When};

#[tokio::test]
async fn a_remembered_job_is_existing_after_it_is_gone() {
    let bench = Bench::new();
    let enqueue = || bench.client.enqueue(task("x")).id("once").remember(HOUR);
    assert!(!enqueue().await.expect("admitted").existing);
    let handler = |_: Task| async { Ok::<_, Verdict>(()) };
    assert_eq!(run(bench.worker().handler(handler)).await.completed, 1);
    let again = enqueue().await.expect("known");
    assert_eq!((again.id, again.state, again.existing), (id("once"), None, true));
}

#[test]
fn every_option_is_in_the_envelope() {
    let bench = Bench::new();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let job: Envelope = bench
        .client
        .enqueue(task("x"))
        .deadline(When::In(2 * HOUR))
        .remember(3 * HOUR)
        .traceparent(trace)
        .envelope()
        .expect("valid");
    assert_eq!((job.deadline(), job.remember()), (Some(When::In(2 * HOUR)), Some(3 * HOUR)));
    assert_eq!(job.headers().get("traceparent").map(String::as_str), Some(trace));
}

#[test]
fn an_option_out_of_bounds_is_named() {
    let bench = Bench::new();
    let zero = std::time::Duration::ZERO;
    for (field, job) in [
        ("deadline", bench.client.enqueue(task("x")).deadline(When::In(zero))),
        ("remember", bench.client.enqueue(task("x")).remember(zero)),
        ("traceparent", bench.client.enqueue(task("x")).traceparent("00-no")),
    ] {
        let Err(StoreError::Invalid(said)) = job.envelope() else { panic!("{field} is taken") };
        assert!(said.starts_with(&format!("{field}: ")), "{said}");
    }
}
