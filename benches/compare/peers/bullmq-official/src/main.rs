//! bullmq-official, BullMQ's own Rust port. Slots set; finished jobs are removed.
use async_trait::async_trait;
use bullmq::options::RedisConnectionOptions;
use bullmq::types::RemoveOnFinish;
use bullmq::worker::WorkerEvent;
use bullmq::{BulkJob, Job, Queue, QueueOptions, Worker, WorkerOptions};
use compare_common::{Payload, Peer, handle};
use serde::Deserialize;

#[derive(Clone)]
struct BullMq {
    connection: RedisConnectionOptions,
    queue: Queue,
}

#[async_trait]
impl Peer for BullMq {
    async fn connect(url: &str, _conc: usize) -> Self {
        let connection = RedisConnectionOptions::new().url(url);
        let options = QueueOptions::new().connection(connection.clone());
        let queue = Queue::with_options("bench", options).await.expect("connect");
        Self { connection, queue }
    }

    async fn enqueue(&self, payload: Payload) {
        self.queue.add("job", payload).await.expect("add");
    }

    async fn enqueue_batch(&self, payloads: Vec<Payload>) -> bool {
        let jobs = payloads.into_iter().map(|payload| BulkJob::new("job", payload)).collect();
        self.queue.add_bulk(jobs).await.expect("add_bulk");
        true
    }

    async fn work(&self, conc: usize) {
        let options = WorkerOptions::new()
            .connection(self.connection.clone())
            .concurrency(conc)
            .remove_on_complete(RemoveOnFinish::Bool(true));
        let job = |job: Job, _| async move {
            handle(Payload::deserialize(job.data())?).await;
            Ok(serde_json::Value::Null)
        };
        let worker = Worker::with_options("bench", job, options).await.expect("worker");
        // The channel of events is unbounded and filled from the start: it must be read.
        while let Some(event) = worker.next_event().await {
            match event {
                WorkerEvent::Failed { error, .. } | WorkerEvent::Error(error) => {
                    eprintln!("bullmq: {error}");
                }
                _ => {}
            }
        }
    }
}

fn main() {
    compare_common::main::<BullMq>();
}
