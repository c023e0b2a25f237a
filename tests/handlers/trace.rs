//! Traces: from the producer to the handler, and on to what the handler enqueues.

use crate::bench::{Bench, HOUR, Task, id, queue, run, task};
use sprag::{Client, Context, TraceParent, Verdict};
use std::sync::{Arc, Mutex};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn header(job: &sprag::Envelope) -> Option<TraceParent> {
    job.headers().get("traceparent").map(|text| text.parse().expect("well-formed"))
}

#[tokio::test]
async fn a_handler_runs_in_a_span_of_its_producers_trace() {
    let bench = Bench::new();
    bench.enqueue(task("a")).traceparent(PARENT).await.expect("admitted");
    let handler = |_: Task, own: Option<TraceParent>, context: Context| async move {
        assert_eq!(TraceParent::current(), own);
        assert_eq!(context.traceparent(), own);
        own.map(|span| (span.trace_id(), span.span_id(), span.is_sampled())).ok_or("no trace")
    };
    run(bench.worker().handler(handler)).await;
    let (trace, span, sampled): (String, String, bool) =
        serde_json::from_str(&bench.result().await).expect("three");
    assert_eq!((trace.as_str(), sampled), ("4bf92f3577b34da6a3ce929d0e0e4736", true));
    assert_ne!(span, "00f067aa0ba902b7", "a child of the producer's span");
}

/// What a handler enqueues by one and by many: the headers, and the span it ran in.
async fn follow_up(parent: Option<&str>) -> (Vec<Option<TraceParent>>, Option<TraceParent>) {
    let bench = Bench::new();
    let job = bench.enqueue(task("a"));
    parent.into_iter().fold(job, |job, parent| job.traceparent(parent)).await.expect("admitted");
    let seen = Arc::<Mutex<Option<TraceParent>>>::default();
    let handler = {
        let seen = seen.clone();
        move |Task(name): Task, client: Client, own: Option<TraceParent>| {
            let seen = seen.clone();
            async move {
                if name == "a" {
                    *seen.lock().expect("no panic in it") = own;
                    client.enqueue(task("one")).id("one").delay(HOUR).await?;
                    client.enqueue_many([task("of many")]).await?;
                    let other = client.enqueue(task("other")).id("other").delay(HOUR);
                    other.traceparent(TraceParent::generate()).await?;
                }
                Ok::<_, sprag::StoreError>(())
            }
        }
    };
    let collected = Arc::<Mutex<Vec<Option<TraceParent>>>>::default();
    // `of many` is due at once: what it carries is seen when it runs, before its handler.
    let watch = {
        let collected = collected.clone();
        tower::util::MapRequestLayer::new(move |context: Context| {
            if context.id() != &id("a") {
                collected.lock().expect("no panic in it").push(header(context.envelope()));
            }
            context
        })
    };
    assert_eq!(run(bench.worker().handler(handler).layer(watch)).await.completed, 2);
    for name in ["one", "other"] {
        let job = bench.client.store().show(&queue(), &id(name)).await.expect("there");
        let (job, _) = job.envelope.expect("decodes");
        collected.lock().expect("no panic in it").push(header(&job));
    }
    let own = *seen.lock().expect("no panic in it");
    (collected.lock().expect("no panic in it").clone(), own)
}

#[tokio::test]
async fn what_a_handler_enqueues_belongs_to_its_own_span_unless_it_says_otherwise() {
    let (enqueued, own) = follow_up(Some(PARENT)).await;
    assert!(own.is_some());
    assert_eq!(enqueued[..2], [own, own], "by one and by many");
    assert_ne!(enqueued[2].map(|span| span.trace_id()), own.map(|span| span.trace_id()));
}

#[tokio::test]
async fn a_job_of_no_trace_begins_none() {
    let (enqueued, own) = follow_up(None).await;
    assert_eq!((own, &enqueued[..2]), (None, &[None, None][..]));
}

#[tokio::test]
async fn a_client_asks_where_it_is_told_to_and_ignores_what_makes_no_sense() {
    let bench = Bench::new();
    let text = Arc::new(Mutex::new(Some(PARENT.to_owned())));
    let client = bench.client.clone().traceparent_from({
        let text = text.clone();
        move || text.lock().expect("no panic in it").clone()
    });
    let own = || header(&client.enqueue(task("x")).envelope().expect("valid"));
    assert_eq!(own(), Some(PARENT.parse().expect("well-formed")));
    let explicit = client.enqueue(task("x")).header("traceparent", "as it is").envelope();
    let explicit = explicit.expect("valid");
    assert_eq!(explicit.headers().get("traceparent").map(String::as_str), Some("as it is"));
    client.enqueue_many([task("x")]).await.expect("enqueued");
    let handler = |_: Task, span: Option<TraceParent>| async move {
        span.map(drop).ok_or_else(|| Verdict::discard("no trace"))
    };
    assert_eq!(run(bench.worker().handler(handler)).await.completed, 1);
    for nonsense in [Some("nonsense".to_owned()), None] {
        *text.lock().expect("no panic in it") = nonsense;
        assert_eq!(own(), None);
    }
}

#[tokio::test]
async fn a_handlers_own_span_counts_before_what_its_client_is_told() {
    let bench = Bench::new();
    let client =
        bench.client.clone().traceparent_from(|| Some(TraceParent::generate().to_string()));
    bench.enqueue(task("a")).traceparent(PARENT).await.expect("admitted");
    let handler = |_: Task, client: Client, own: Option<TraceParent>| async move {
        let job = client.enqueue(task("x")).envelope()?;
        assert_eq!(header(&job), own);
        Ok::<_, sprag::StoreError>(())
    };
    let builder = sprag::Worker::builder(&client).handler(handler);
    assert_eq!(run(builder).await.completed, 1);
}

#[test]
fn a_trace_takes_no_room_that_the_jobs_own_headers_need() {
    let client = Bench::new().client.traceparent_from(|| Some(PARENT.to_owned()));
    let many = (0..64).fold(client.enqueue(task("x")), |job, i| job.header(i.to_string(), ""));
    assert_eq!(many.envelope().map(|job| job.headers().len()), Ok(64));
    let large = client.enqueue(task("x")).header("x", "x".repeat((16 << 10) - 1));
    assert_eq!(large.envelope().map(|job| job.headers().len()), Ok(1));
}
