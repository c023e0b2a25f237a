//! rusty-sidekiq. Slots set; a pool in which every slot can block, and another one for producers.
use async_trait::async_trait;
use compare_common::{Payload, Peer, handle};
use sidekiq::{Processor, ProcessorConfig, RedisConnectionManager, RedisPool, Worker};

#[derive(Clone)]
struct Sidekiq(RedisPool);

struct BenchWorker;

#[async_trait]
impl Worker<Payload> for BenchWorker {
    async fn perform(&self, payload: Payload) -> sidekiq::Result<()> {
        handle(payload).await;
        Ok(())
    }
}

#[async_trait]
impl Peer for Sidekiq {
    async fn connect(url: &str, conc: usize) -> Self {
        let manager = RedisConnectionManager::new(url).expect("a URL");
        let size = conc as u32 + 10;
        Sidekiq(bb8::Pool::builder().max_size(size).build(manager).await.expect("connect"))
    }

    async fn enqueue(&self, payload: Payload) {
        BenchWorker::perform_async(&self.0, payload).await.expect("perform_async");
    }

    async fn work(&self, conc: usize) {
        let config = ProcessorConfig::default().num_workers(conc);
        let queues = vec!["default".to_string()];
        let mut processor = Processor::new(self.0.clone(), queues).with_config(config);
        processor.register(BenchWorker);
        processor.run().await;
    }
}

fn main() {
    compare_common::main::<Sidekiq>();
}
