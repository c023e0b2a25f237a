//! oxana, without its default features. Slots set; a connection for every slot; an idle worker looks
//! for jobs every 10 ms instead of every 10 s.
use async_trait::async_trait;
use compare_common::{Payload, Peer, at_defaults, handle};
use oxana::{JobContext, QueueConcurrency, QueueConfig, QueueKind, Storage};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct BenchJob(Payload);

impl oxana::Job for BenchJob {}

struct BenchQueue;

impl oxana::Queue for BenchQueue {
    fn to_config() -> QueueConfig {
        QueueConfig {
            kind: QueueKind::Static { key: "bench".into() },
            concurrency: QueueConcurrency::Fixed(1),
            throttle: None,
        }
    }
}

struct BenchWorker;

impl oxana::FromContext<()> for BenchWorker {
    fn from_context(_: &()) -> Self {
        BenchWorker
    }
}

#[async_trait]
impl oxana::Worker<BenchJob> for BenchWorker {
    type Error = Infallible;

    async fn process(&self, job: BenchJob, _: &JobContext) -> Result<(), Infallible> {
        handle(job.0).await;
        Ok(())
    }
}

#[derive(Clone)]
struct Oxana(Storage);

#[async_trait]
impl Peer for Oxana {
    async fn connect(url: &str, conc: usize) -> Self {
        let builder = Storage::builder().max_pool_size(conc.max(40) + 10);
        Oxana(builder.build_from_redis_url(url).expect("connect"))
    }

    async fn enqueue(&self, payload: Payload) {
        self.0.enqueue(BenchQueue, BenchJob(payload)).await.expect("enqueue");
    }

    async fn enqueue_batch(&self, payloads: Vec<Payload>) -> bool {
        let jobs = payloads.into_iter().map(BenchJob);
        self.0.enqueue_list(BenchQueue, jobs).await.expect("enqueue_list");
        true
    }

    async fn work(&self, conc: usize) {
        let mut runtime = self
            .0
            .runtime(())
            .queue_with_concurrency::<BenchQueue>(conc)
            .worker::<BenchWorker, BenchJob>();
        if !at_defaults() {
            runtime = runtime.dequeue_timeout(Duration::from_millis(10));
        }
        if let Err(error) = runtime.run().await {
            eprintln!("the oxana worker ended: {error}");
        }
    }
}

fn main() {
    compare_common::main::<Oxana>();
}
