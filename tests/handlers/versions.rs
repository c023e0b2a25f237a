//! Payloads of other versions than the worker's, as while a deployment is under way.

use crate::bench::{Bench, run};
use sprag::{Codec, Job, State, Verdict, job::Payload, store::EndingReason, worker::BoxError};

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Greet {
    name: String,
}

#[derive(serde::Deserialize)]
struct GreetV1 {
    first: String,
    last: String,
}

impl Job for Greet {
    const KIND: &'static str = "greet";
    const VERSION: u32 = 2;

    fn upgrade(payload: Payload<'_>) -> Result<Self, BoxError> {
        match payload.version() {
            1 => {
                let GreetV1 { first, last } = payload.decode()?;
                if last.is_empty() {
                    return Err("nobody is without a last name".into());
                }
                Ok(Self { name: format!("{first} {last}") })
            }
            _ => Ok(payload.decode()?),
        }
    }
}

async fn greet(job: Greet) -> Result<String, Verdict> {
    Ok(format!("hello {}", job.name))
}

async fn after_one_run(version: u32, payload: &str) -> Bench {
    let bench = Bench::new();
    bench.enqueue_raw("greet", version, payload.as_bytes(), Codec::Json).await;
    run(bench.worker().handler(greet)).await;
    bench
}

#[tokio::test]
async fn a_payload_of_an_earlier_version_is_upgraded() {
    let bench = after_one_run(1, r#"{"first": "Ada", "last": "Lovelace"}"#).await;
    assert_eq!(bench.result().await, r#""hello Ada Lovelace""#);
}

#[tokio::test]
async fn a_payload_that_cannot_be_upgraded_is_archived_with_the_reason() {
    let bench = after_one_run(1, r#"{"first": "Ada", "last": ""}"#).await;
    let (reason, said) = bench.ending().await;
    assert_eq!(reason, EndingReason::Undecodable);
    assert_eq!(said, "payload version 1, now 2: nobody is without a last name");
    assert_eq!(bench.job().await.attempt, 0);
}

#[tokio::test]
async fn a_payload_that_cannot_be_decoded_is_archived_at_once_with_the_reason() {
    let bench = after_one_run(2, r#"{"nome": "Ada"}"#).await;
    let (reason, said) = bench.ending().await;
    assert_eq!(reason, EndingReason::Undecodable);
    assert!(said.contains("missing field `name`"), "{said}");
    assert_eq!(bench.job().await.attempt, 0);
}

#[tokio::test]
async fn a_payload_of_a_later_version_that_can_be_decoded_runs() {
    let bench = after_one_run(3, r#"{"name": "Ada", "title": "Countess"}"#).await;
    assert_eq!(bench.result().await, r#""hello Ada""#);
}

#[tokio::test]
async fn a_payload_of_a_later_version_that_cannot_be_decoded_waits_for_another_worker() {
    let bench = Bench::new();
    bench.enqueue_raw("greet", 3, br#"{"names": ["Ada"]}"#, Codec::Json).await;
    let report = run(bench.worker().handler(greet)).await;
    assert_eq!((report.snoozed, report.unhandled, report.archived), (1, 1, 0));
    assert_eq!(bench.told().await, (State::Scheduled, 0, None));
}
