//! The span `job`, in which handlers run, as a subscriber sees it.

use crate::bench::{Bench, Log, Task, run, task};
use sprag::{Context, Verdict};
use std::{collections::BTreeMap, fmt};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{Layer, layer::SubscriberExt, registry::LookupSpan};

/// Field to value, as text.
#[derive(Debug, Default, Clone)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Writes down each event of this test with the spans around it.
struct Listener(Log);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Listener {
    fn on_new_span(
        &self,
        attributes: &Attributes<'_>,
        id: &Id,
        context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).expect("new").extensions_mut().insert(fields);
    }

    fn on_event(&self, event: &Event<'_>, context: tracing_subscriber::layer::Context<'_, S>) {
        if event.metadata().target() != "test" {
            return;
        }
        let spans = context.event_scope(event).into_iter().flatten().map(|span| {
            let fields = span.extensions().get::<Fields>().cloned().unwrap_or_default();
            let fields: Vec<_> = fields.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let (target, name) = (span.metadata().target(), span.name());
            format!("{target} {name} {}", fields.join(" "))
        });
        self.0.add(spans.collect::<Vec<_>>().join(" in "));
    }
}

async fn speak(_: Task, context: Context) -> Result<u64, Verdict> {
    tracing::info!(target: "test", "before");
    tokio::task::yield_now().await;
    tracing::info!(target: "test", "after an await");
    Ok(context.fence().0)
}

#[tokio::test]
async fn a_handlers_events_are_inside_the_span_of_its_job() {
    let (bench, log) = (Bench::new(), Log::default());
    let subscriber = tracing_subscriber::registry().with(Listener(log.clone()));
    let _here = tracing::subscriber::set_default(subscriber);
    let parent = sprag::TraceParent::generate();
    bench.enqueue(task("a")).traceparent(parent).await.expect("admitted");
    run(bench.worker().handler(speak)).await;
    let events = log.all();
    let fence = bench.result().await;
    let expected = format!(
        "sprag::job job attempt=1 fence={fence} job_id=a kind=task queue=default traceparent=00-{}-",
        parent.trace_id()
    );
    assert_eq!(events.len(), 2);
    for event in &events {
        assert!(event.starts_with(&expected), "{event}\nis not\n{expected}…");
    }
    assert!(!events[0].contains(&parent.span_id()), "its own span, not the producer's");
}

#[tokio::test]
async fn a_job_of_no_trace_has_no_traceparent_in_its_span() {
    let (bench, log) = (Bench::new(), Log::default());
    let subscriber = tracing_subscriber::registry().with(Listener(log.clone()));
    let _here = tracing::subscriber::set_default(subscriber);
    bench.enqueue(task("a")).await.expect("admitted");
    run(bench.worker().handler(speak)).await;
    let events = log.all();
    assert!(events[0].starts_with("sprag::job job ") && !events[0].contains("traceparent"));
}
