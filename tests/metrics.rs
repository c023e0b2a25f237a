//! What is counted and measured, as an exporter sees it. The recorder is the process's: one test.

use metrics_util::{
    MetricKind,
    debugging::{DebugValue, DebuggingRecorder, Snapshotter},
};
use sprag::{
    Client, Codec, Context, Enqueue, Envelope, Job, Kind, ManualClock, MemoryStore, QueueName,
    Timestamp, Unique, Verdict, Worker,
    worker::{Answer, BoxError},
};
use std::{collections::BTreeMap, time::Duration};

const HOUR: Duration = Duration::from_secs(3_600);

#[derive(serde::Serialize, serde::Deserialize)]
struct Task(String);

impl Job for Task {
    const KIND: &'static str = "task";
}

/// What is counted: `name{label=value,…}` to its value; of a histogram the number of its samples.
fn seen(snapshotter: &Snapshotter) -> BTreeMap<String, f64> {
    let one = |(key, _, _, value): (metrics_util::CompositeKey, _, _, DebugValue)| {
        let (kind, key) = key.into_parts();
        let labels: Vec<_> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(level) => level.into_inner(),
            DebugValue::Histogram(samples) => samples.len() as f64,
        };
        let expected = match key.name() {
            name if name.ends_with("_total") => MetricKind::Counter,
            name if name.ends_with("_seconds") => MetricKind::Histogram,
            _ => MetricKind::Gauge,
        };
        assert_eq!(kind, expected, "{}", key.name());
        (format!("{}{{{}}}", key.name(), labels.join(",")), value)
    };
    let all = snapshotter.snapshot().into_vec().into_iter().map(one);
    all.filter(|(_, value)| *value != 0.0).collect()
}

fn expect(snapshotter: &Snapshotter, expected: &[(&str, f64)]) {
    let expected = expected.iter().map(|(name, value)| ((*name).to_owned(), *value));
    assert_eq!(seen(snapshotter), expected.collect());
}

struct Bench {
    client: Client,
    clock: ManualClock,
}

impl Bench {
    fn task(&self, name: &str) -> Enqueue {
        self.client.enqueue(Task(name.to_owned())).id(name)
    }

    fn of_kind(&self, kind: &str) -> Envelope {
        let queue = QueueName::new("default").expect("queue");
        let job = Envelope::builder(queue, Kind::new(kind).expect("kind"));
        job.payload(kind.as_bytes().to_vec(), Codec::Raw).build().expect("valid")
    }

    /// All that clients say becomes of a job.
    async fn enqueue(&self) {
        for name in ["completes", "fails", "snoozes", "discarded", "cancelled"] {
            self.task(name).await.expect("admitted");
        }
        assert!(self.task("fails").await.expect("known").existing);
        self.task("held").unique(Unique::key("k")).delay(HOUR).await.expect("admitted");
        self.task("second").unique_key("k").await.expect_err("held");
        self.client.enqueue(Task("other".into())).id("fails").await.expect_err("another content");
        self.task("late").deadline(Timestamp::from_millis(1)).await.expect_err("past");
        let store = self.client.store();
        let queue = QueueName::new("full").expect("queue");
        store.set(&queue, &[sprag::store::Setting::Limit(Some(0))]).await.expect("set");
        self.task("excess").queue("full").await.expect_err("full");
        let atomic = [self.of_kind("unheard-of"), self.of_kind("unheard-of-2")];
        self.client.enqueue_atomic(&atomic).await.expect("admitted");
    }
}

async fn handler(Task(what): Task, context: Context) -> Result<(), BoxError> {
    match what.as_str() {
        "fails" => return Err("no".into()),
        "snoozes" => return Err(Verdict::snooze(HOUR).into()),
        "discarded" => return Err(Verdict::discard("no use").into()),
        "cancelled" => drop(context.cancelled().await),
        _ => {}
    }
    Ok(())
}

#[tokio::test]
async fn every_job_is_counted_under_a_bounded_name() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().expect("the first in this process");
    let clock = ManualClock::at(Timestamp::from_millis(1_764_500_000_000));
    let client = Client::new(MemoryStore::with_clock(clock.clone()));
    let bench = Bench { client, clock };

    bench.enqueue().await;
    expect(
        &snapshotter,
        &[
            ("sprag_jobs_enqueued_total{queue=default,kind=task,outcome=enqueued}", 6.0),
            ("sprag_jobs_enqueued_total{queue=default,kind=task,outcome=existing}", 1.0),
            ("sprag_jobs_enqueued_total{queue=default,kind=task,outcome=duplicate}", 1.0),
            ("sprag_jobs_enqueued_total{queue=default,kind=task,outcome=id_conflict}", 1.0),
            ("sprag_jobs_enqueued_total{queue=default,kind=task,outcome=invalid}", 1.0),
            ("sprag_jobs_enqueued_total{queue=full,kind=task,outcome=backpressure}", 1.0),
            ("sprag_jobs_enqueued_total{queue=default,kind=unheard-of,outcome=enqueued}", 1.0),
            ("sprag_jobs_enqueued_total{queue=default,kind=unheard-of-2,outcome=enqueued}", 1.0),
        ],
    );

    let builder = || {
        let builder = Worker::builder(&bench.client).backoff(|_| HOUR).handler(handler);
        builder.timeout(Duration::from_millis(20))
    };
    builder().build().expect("a worker").run_until_empty().await.expect("in memory");
    expect(
        &snapshotter,
        &[
            ("sprag_jobs_processed_total{queue=default,kind=task,outcome=completed}", 2.0),
            ("sprag_jobs_processed_total{queue=default,kind=task,outcome=retried}", 1.0),
            ("sprag_jobs_processed_total{queue=default,kind=task,outcome=snoozed}", 1.0),
            ("sprag_jobs_processed_total{queue=default,kind=task,outcome=archived}", 1.0),
            ("sprag_jobs_unhandled_total{queue=default}", 2.0),
            ("sprag_jobs_cancelled_total{queue=default,reason=timeout}", 1.0),
            ("sprag_job_run_seconds{queue=default,kind=task}", 5.0),
            ("sprag_job_wait_seconds{queue=default,kind=task}", 5.0),
        ],
    );

    // Whatever kinds producers make up: without a handler of their own they are one, `other`.
    bench.clock.advance(HOUR);
    let service = tower::service_fn(|_: Context| async { Ok::<_, BoxError>(Answer::NONE) });
    builder()
        .fallback(service)
        .build()
        .expect("a worker")
        .run_until_empty()
        .await
        .expect("in memory");
    expect(
        &snapshotter,
        &[
            ("sprag_jobs_swept_total{queue=default,what=promoted}", 5.0),
            ("sprag_jobs_processed_total{queue=default,kind=task,outcome=completed}", 1.0),
            ("sprag_jobs_processed_total{queue=default,kind=task,outcome=retried}", 1.0),
            ("sprag_jobs_processed_total{queue=default,kind=task,outcome=snoozed}", 1.0),
            ("sprag_jobs_processed_total{queue=default,kind=other,outcome=completed}", 2.0),
            ("sprag_job_run_seconds{queue=default,kind=task}", 3.0),
            ("sprag_job_wait_seconds{queue=default,kind=task}", 3.0),
            ("sprag_job_run_seconds{queue=default,kind=other}", 2.0),
            ("sprag_job_wait_seconds{queue=default,kind=other}", 2.0),
        ],
    );
}
