//! sprag, by its public API, at its defaults but for `concurrency`.
use async_trait::async_trait;
use compare_common::{Payload, Peer, handle};
use serde::{Deserialize, Serialize};
use sprag::{Client, Job, Worker};

#[derive(Serialize, Deserialize)]
struct BenchJob(Payload);

impl Job for BenchJob {
    const KIND: &'static str = "bench:job";
    const QUEUE: &'static str = "bench";
}

#[derive(Clone)]
struct Sprag(Client);

#[async_trait]
impl Peer for Sprag {
    async fn connect(url: &str, _conc: usize) -> Self {
        Sprag(Client::connect(url).expect("connect"))
    }

    async fn enqueue(&self, payload: Payload) {
        self.0.enqueue(BenchJob(payload)).await.expect("enqueue");
    }

    async fn enqueue_batch(&self, payloads: Vec<Payload>) -> bool {
        let jobs: Vec<_> = payloads.into_iter().map(BenchJob).collect();
        self.0.enqueue_many(jobs).await.expect("enqueue_many");
        true
    }

    async fn work(&self, conc: usize) {
        let worker = Worker::builder(&self.0)
            .concurrency(conc)
            .handler(|job: BenchJob| async move {
                handle(job.0).await;
                Ok::<(), std::convert::Infallible>(())
            })
            .build()
            .expect("worker");
        worker.run().await;
    }
}

fn main() {
    compare_common::main::<Sprag>();
}
