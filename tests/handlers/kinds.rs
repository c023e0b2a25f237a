//! Which handler runs which kind.

use crate::bench::{Bench, HOUR, Task, id, queue, run, task};
use sprag::{
    Codec, Context, Job, State, StoreError, Verdict,
    worker::{Answer, BoxError},
};

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Renamed(u64);

impl Job for Renamed {
    const KIND: &'static str = "new-name";
    const ALIASES: &'static [&'static str] = &["old-name", "older-name"];
}

async fn renamed(Renamed(number): Renamed, context: Context) -> Result<String, Verdict> {
    Ok(format!("{} {number}", context.kind()))
}

async fn named(Task(name): Task) -> Result<String, Verdict> {
    Ok(name)
}

#[tokio::test]
async fn each_kind_goes_to_its_own_handler() {
    let bench = Bench::new();
    bench.client.enqueue(Renamed(1)).id("b").retention(HOUR).await.expect("admitted");
    bench.enqueue(task("mine")).await.expect("admitted");
    assert_eq!(run(bench.worker().handler(renamed).handler(named)).await.completed, 2);
    assert_eq!(bench.result().await, r#""mine""#);
    let other = bench.client.store().show(&queue(), &id("b")).await.expect("kept");
    assert_eq!(other.result.as_deref(), Some(&br#""new-name 1""#[..]));
}

#[tokio::test]
async fn a_handler_runs_jobs_of_its_types_former_names() {
    for former in Renamed::ALIASES {
        let bench = Bench::new();
        bench.enqueue_raw(former, 1, b"7", Codec::Json).await;
        run(bench.worker().handler(renamed)).await;
        assert_eq!(bench.result().await, format!(r#""{former} 7""#));
    }
}

#[test]
fn two_handlers_for_one_kind_or_alias_are_refused() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Old;
    impl Job for Old {
        const KIND: &'static str = "old-name";
    }
    let bench = Bench::new();
    let twice = bench.worker().handler(named).handler(named).build();
    let alias = bench.worker().handler(renamed).handler(|_: Old| async { Ok::<_, Verdict>(()) });
    for (kind, refused) in [("task", twice), ("old-name", alias.build())] {
        let Err(StoreError::Invalid(said)) = refused else { panic!("{kind}: built") };
        assert!(said.starts_with("handlers: ") && said.contains(kind), "{said}");
    }
    assert!(matches!(bench.worker().build(), Err(StoreError::Invalid(_))), "no handler at all");
}

async fn size(context: Context) -> Result<Answer, BoxError> {
    let bytes = context.envelope().payload().len();
    Ok(Answer::json(&format!("{} of {bytes}", context.kind()))?)
}

#[tokio::test]
async fn a_service_gets_the_payload_as_it_is() {
    let bench = Bench::new();
    bench.enqueue_raw("blob", 9, &[0xc1, 0, 255], Codec::Raw).await;
    let service = tower::service_fn(size);
    run(bench.worker().service("blob", service).queue("default")).await;
    assert_eq!(bench.result().await, r#""blob of 3""#);
}

#[tokio::test]
async fn the_fallback_runs_every_kind_that_has_no_handler_of_its_own() {
    let bench = Bench::new();
    bench.enqueue_raw("unheard-of", 1, b"x", Codec::Raw).await;
    bench.client.enqueue(task("known")).id("b").retention(HOUR).await.expect("admitted");
    let builder = bench.worker().handler(named).fallback(tower::service_fn(size));
    let report = run(builder).await;
    assert_eq!((report.completed, report.unhandled), (2, 0));
    assert_eq!(bench.result().await, r#""unheard-of of 1""#);
    let known = bench.client.store().show(&queue(), &id("b")).await.expect("kept");
    assert_eq!(known.result.as_deref(), Some(&br#""known""#[..]));
}

#[tokio::test]
async fn a_kind_that_nobody_knows_here_is_snoozed_and_counted() {
    let bench = Bench::new();
    bench.enqueue_raw("unheard-of", 1, b"x", Codec::Raw).await;
    let report = run(bench.worker().handler(named)).await;
    assert_eq!((report.snoozed, report.unhandled), (1, 1));
    assert_eq!(bench.told().await, (State::Scheduled, 0, None));
    let seconds = bench.due_in().await.as_secs_f64();
    assert!((4.0..=6.0).contains(&seconds), "about five seconds: {seconds}");
}
