//! What handlers ask for in their arguments.

use crate::bench::{Bench, HOUR, Task, run, task};
use sprag::{
    Client, Context, Fence, JobId, QueueName, State, StoreError, TraceParent, Verdict,
    store::EndingReason,
    worker::{Attempt, BoxError, Data, FromJob, Headers, Shutdown},
};
use std::sync::atomic::{AtomicU64, Ordering};

#[tokio::test]
async fn a_handler_has_up_to_nine_arguments() {
    #[allow(clippy::too_many_arguments, reason = "as many as there may be")]
    async fn all(
        Task(name): Task,
        context: Context,
        id: JobId,
        queue: QueueName,
        fence: Fence,
        Attempt(attempt): Attempt,
        Headers(headers): Headers,
        base: Data<u64>,
        trace: Option<TraceParent>,
    ) -> Result<String, Verdict> {
        assert_eq!((context.id(), context.queue()), (&id, &queue));
        assert_eq!((context.fence(), context.attempt()), (fence, attempt));
        assert_eq!((context.envelope().headers(), context.traceparent()), (&headers, trace));
        assert!(fence.0 > 0 && trace.is_none());
        let tenant = headers.get("tenant").map_or("none", String::as_str);
        Ok(format!("{name} {id} {queue} {attempt} {tenant} {}", *base + 1))
    }
    let bench = Bench::new();
    bench.enqueue(task("all")).header("tenant", "acme").await.expect("admitted");
    assert_eq!(run(bench.worker().data(41_u64).handler(all)).await.completed, 1);
    assert_eq!(bench.result().await, r#""all a default 0 acme 42""#);
}

#[tokio::test]
async fn the_attempt_counts_the_failures_before() {
    let bench = Bench::new();
    bench.enqueue(task("fails")).await.expect("admitted");
    let builder = || {
        bench.worker().handler(|_: Task, Attempt(attempt): Attempt| async move {
            if attempt < 2 { Err("again") } else { Ok(attempt) }
        })
    };
    for _ in 0..3 {
        run(builder()).await;
        bench.clock.advance(HOUR);
    }
    assert_eq!(bench.result().await, "2");
}

#[tokio::test]
async fn a_handler_enqueues_by_its_client_and_stops_its_worker() {
    async fn chain(Task(name): Task, client: Client, shutdown: Shutdown) -> Result<(), StoreError> {
        match name.as_str() {
            "first" => drop(client.enqueue(task("last")).await?),
            _ => shutdown.drain(),
        }
        client.enqueue(task("left")).await?;
        Ok(())
    }
    let bench = Bench::new();
    bench.enqueue(task("first")).await.expect("admitted");
    assert_eq!(run(bench.worker().handler(chain)).await.completed, 2);
    let info = bench.client.store().queue(&crate::bench::queue()).await.expect("there");
    assert_eq!(info.pending, 2, "both of the last ones: the worker was told to stop");
}

#[tokio::test]
async fn data_is_one_value_for_all_handlers_of_a_worker() {
    let bench = Bench::new();
    let add = |_: Task, total: Data<AtomicU64>| async move {
        Ok::<_, BoxError>(total.clone().into_inner().fetch_add(1, Ordering::Relaxed))
    };
    for name in ["a", "b"] {
        bench.client.enqueue(task(name)).id(name).retention(HOUR).await.expect("admitted");
    }
    assert_eq!(run(bench.worker().data(AtomicU64::new(7)).handler(add)).await.completed, 2);
    let second = bench.client.store().show(&crate::bench::queue(), &crate::bench::id("b")).await;
    assert_eq!(second.expect("kept").result.as_deref(), Some(&b"8"[..]));
}

#[test]
fn missing_data_is_named_when_the_worker_is_built() {
    struct Database;
    async fn query(_: Task, _: JobId, _: Data<Database>) -> Result<(), Verdict> {
        Ok(())
    }
    let bench = Bench::new();
    let Err(StoreError::Invalid(said)) = bench.worker().handler(query).build() else {
        panic!("built without its data");
    };
    assert!(said.starts_with("data: ") && said.contains("Database"), "{said}");
    assert!(bench.worker().handler(query).data(Database).build().is_ok(), "in any order");
}

/// Whose job it is.
struct Tenant(String);

impl FromJob for Tenant {
    fn from_job(context: &Context) -> Result<Self, BoxError> {
        let known = Data::<Vec<&str>>::from_job(context)?;
        match context.envelope().headers().get("tenant") {
            Some(tenant) if known.contains(&tenant.as_str()) => Ok(Self(tenant.clone())),
            Some(tenant) => Err(Verdict::discard(format!("{tenant} is gone")).into()),
            None => Err("no header `tenant`".into()),
        }
    }
}

#[tokio::test]
async fn an_argument_of_ones_own_is_made_of_the_job_and_of_data() {
    let bench = Bench::new();
    let handler = |_: Task, Tenant(tenant): Tenant| async { Ok::<_, Verdict>(tenant) };
    let builder = || bench.worker().data(vec!["acme"]).handler(handler);
    bench.enqueue(task("good")).header("tenant", "acme").await.expect("admitted");
    run(builder()).await;
    assert_eq!(bench.result().await, r#""acme""#);
}

#[tokio::test]
async fn the_error_of_an_argument_is_a_failed_attempt_or_its_verdict() {
    let handler = |_: Task, _: Tenant| async { Ok::<_, Verdict>(()) };
    let bench = Bench::new();
    bench.enqueue(task("none")).await.expect("admitted");
    run(bench.worker().data(vec!["acme"]).handler(handler)).await;
    let said = Some("no header `tenant`".to_owned());
    assert_eq!(bench.told().await, (State::Retry, 1, said));

    let bench = Bench::new();
    bench.enqueue(task("gone")).header("tenant", "old").await.expect("admitted");
    run(bench.worker().data(vec!["acme"]).handler(handler)).await;
    assert_eq!(bench.ending().await, (EndingReason::Discarded, "old is gone".to_owned()));
}
