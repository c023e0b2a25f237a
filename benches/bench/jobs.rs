//! The jobs of most sections, how a queue is filled with them, and the proof that all are settled.

use crate::server::{PATIENCE, key};
use futures_util::{StreamExt, stream};
use redis::aio::MultiplexedConnection;
use sprag::{Client, Codec, Envelope, Job, Kind, QueueName, Store, model::EnvelopeBuilder};
use std::time::{Duration, Instant};

/// Bytes of a payload, about.
const PAYLOAD: usize = 220;
/// Jobs of a call, and calls in flight, where a queue is only filled.
const FILL: (usize, usize) = (1_000, 4);

/// The queue of most sections.
pub(crate) fn queue() -> QueueName {
    QueueName::new("email").expect("queue")
}

/// What a handler of type gets.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Task {
    pub(crate) number: u64,
    text: String,
}

impl Job for Task {
    const KIND: &'static str = "email:welcome";
    const QUEUE: &'static str = "email";
}

impl Task {
    pub(crate) fn new(number: u64) -> Self {
        // The names of the fields and the number are some bytes as well.
        Self { number, text: "x".repeat(PAYLOAD - 20) }
    }
}

/// A job of the store, without a type: its payload is random.
pub(crate) fn envelope(set: impl FnOnce(EnvelopeBuilder) -> EnvelopeBuilder) -> Envelope {
    let payload: Vec<u8> = (0..PAYLOAD).map(|_| fastrand::u8(..)).collect();
    let job = Envelope::builder(queue(), Kind::new(Task::KIND).expect("kind"));
    set(job.payload(payload, Codec::Raw)).build().expect("in bounds")
}

/// Plain ones.
pub(crate) fn envelopes(count: usize) -> Vec<Envelope> {
    (0..count).map(|_| envelope(|job| job)).collect()
}

/// So many tasks into a queue.
pub(crate) async fn fill(client: &Client, queue: &QueueName, jobs: usize) {
    let task = |number: usize| {
        let task = client.enqueue(Task::new(number as u64)).queue(queue);
        task.envelope().expect("in bounds")
    };
    fill_with(&**client.store(), queue, jobs, task).await;
}

/// So many jobs, in batches with several in flight.
pub(crate) async fn fill_with(
    store: &dyn Store,
    queue: &QueueName,
    jobs: usize,
    make: impl Fn(usize) -> Envelope,
) {
    let (batch, in_flight) = FILL;
    let calls = (0..jobs).step_by(batch).map(|first| {
        let made: Vec<_> = (first..jobs.min(first + batch)).map(&make).collect();
        async move { store.enqueue(queue, &made).await.expect("enqueue") }
    });
    let mut answers = stream::iter(calls).buffer_unordered(in_flight);
    while let Some(outcomes) = answers.next().await {
        assert!(outcomes.iter().all(Result::is_ok), "all are admitted");
    }
}

/// Waits until nothing of the queue is unfinished, by the counter alone: workers need the server.
/// Answers how often it has asked.
pub(crate) async fn until_empty(probe: &mut MultiplexedConnection, queue: &QueueName) -> u32 {
    let (mut least, mut moved) = (u64::MAX, Instant::now());
    for asked in 1.. {
        let counter = redis::cmd("HGET").arg(key(queue, "meta")).arg("unfinished").to_owned();
        let left: Option<u64> = counter.query_async(probe).await.expect("HGET");
        match left {
            None | Some(0) => return asked,
            Some(left) if left < least => (least, moved) = (left, Instant::now()),
            Some(left) => assert!(moved.elapsed() < 3 * PATIENCE, "{left} jobs do not move"),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    unreachable!("it asks for ever")
}

/// Panics unless all jobs of the queue were completed, so many since it was made, and none is left.
pub(crate) async fn check_settled(client: &Client, queue: &QueueName, jobs: u64) {
    let inspector = client.inspector();
    let info = inspector.queue(queue).await.expect("the queue is there");
    assert_eq!(info.unfinished, 0, "{queue}: every job is settled");
    // It may have run over midnight.
    let days = inspector.days(queue, 2).await.expect("days");
    let completed: u64 = days.iter().map(|day| day.completed).sum();
    assert_eq!(completed, jobs, "{queue}: every job was completed");
}
