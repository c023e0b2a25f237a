//! What a handler returns.

use crate::bench::{Bench, Task, run, task};
use sprag::{State, Verdict, worker::Handler};
use std::collections::{BTreeMap, HashMap};

async fn after_one_run<Args: 'static>(handler: impl Handler<Args, Job = Task>) -> Bench {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    run(bench.worker().handler(handler)).await;
    bench
}

#[derive(serde::Serialize)]
struct Receipt {
    number: u64,
    lines: Vec<&'static str>,
}

#[tokio::test]
async fn a_result_of_any_type_is_kept_as_json() {
    let receipt = |_: Task| async { Ok::<_, Verdict>(Receipt { number: 7, lines: vec!["tea"] }) };
    assert_eq!(after_one_run(receipt).await.result().await, r#"{"number":7,"lines":["tea"]}"#);
    let counts = |_: Task| async { Ok::<_, Verdict>(BTreeMap::from([("sent", 3)])) };
    assert_eq!(after_one_run(counts).await.result().await, r#"{"sent":3}"#);
}

#[tokio::test]
async fn nothing_is_no_result() {
    let nothing = |_: Task| async { Ok::<_, Verdict>(()) };
    let none = |_: Task| async { Ok::<_, Verdict>(None::<u64>) };
    for bench in [after_one_run(nothing).await, after_one_run(none).await] {
        let job = bench.job().await;
        assert_eq!((job.state, job.result), (State::Completed, None));
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_encoded_is_a_failed_attempt() {
    let unfit = |_: Task| async { Ok::<_, Verdict>(HashMap::from([(vec![1], 2)])) };
    let (state, attempt, said) = after_one_run(unfit).await.told().await;
    assert_eq!((state, attempt), (State::Retry, 1));
    let said = said.expect("a text");
    assert!(said.starts_with("its result cannot be encoded: "), "{said}");
}

#[tokio::test]
async fn a_result_that_is_too_large_completes_its_job_without_it() {
    let large = |_: Task| async { Ok::<_, Verdict>("x".repeat(300_000)) };
    let job = after_one_run(large).await.job().await;
    assert_eq!((job.state, job.result), (State::Completed, None));
    let reason = job.ending.expect("ended").reason;
    assert_eq!(reason, sprag::store::EndingReason::CompletedWithoutResult);
}
