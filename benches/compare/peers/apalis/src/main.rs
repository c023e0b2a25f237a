//! apalis over apalis-redis. Slots set; as many jobs a fetch as slots; no pub/sub events; a heartbeat,
//! which is also when an idle worker looks for jobs, every 100 ms instead of 30 s, and a worker that
//! missed 30 s of them is dead.
use apalis::prelude::*;
use apalis_redis::{Config, RedisStorage};
use compare_common::{Payload, Peer, at_defaults, handle};
use std::time::Duration;

#[derive(Clone)]
struct Apalis(RedisStorage<Payload>);

async fn job(payload: Payload) -> Result<(), BoxDynError> {
    handle(payload).await;
    Ok(())
}

#[async_trait::async_trait]
impl Peer for Apalis {
    async fn connect(url: &str, conc: usize) -> Self {
        let conn = apalis_redis::connect(url).await.expect("connect");
        let mut config = Config::default().queue("bench");
        if !at_defaults() {
            config = config
                .batch_size(conc.max(10))
                .emit_events(false)
                .heartbeat_interval(Duration::from_millis(100))
                .missed_heartbeats(300);
        }
        Apalis(RedisStorage::new(conn).with_config(config))
    }

    async fn enqueue(&self, payload: Payload) {
        self.0.clone().push(payload).await.expect("push");
    }

    async fn enqueue_batch(&self, payloads: Vec<Payload>) -> bool {
        self.0.clone().push_bulk(payloads).await.expect("push_bulk");
        true
    }

    async fn work(&self, conc: usize) {
        let name = format!("worker-{}", std::process::id());
        let worker = WorkerBuilder::new(name).backend(self.0.clone()).concurrency(conc).build(job);
        if let Err(error) = worker.run().await {
            eprintln!("the apalis worker ended: {error:?}");
        }
    }
}

fn main() {
    compare_common::main::<Apalis>();
}
