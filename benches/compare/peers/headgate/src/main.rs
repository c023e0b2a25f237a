//! headgate over headgate-redis. Slots set; the wait between two fetches is 1 ms after work and grows
//! to 10 ms at rest, instead of 50 ms to 2 s; jobs are ephemeral (retention 0, the default).
use compare_common::{Payload, Peer, at_defaults, handle};
use headgate::{JobCtx, Registry, Task, Worker, WorkerConfig};
use headgate_core::{CodecError, Envelope};
use headgate_redis::RedisStore;
use std::sync::Arc;
use std::time::Duration;

struct Job(Payload);

impl Task for Job {
    const TYPE: &'static str = "bench:job";

    fn encode(&self) -> Result<Vec<u8>, CodecError> {
        Ok(serde_json::to_vec(&self.0).expect("JSON"))
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(Job(serde_json::from_slice(bytes).expect("JSON")))
    }
}

#[derive(Clone)]
struct Headgate {
    client: headgate::Client,
    store: Arc<RedisStore>,
}

fn envelope(payload: Payload) -> Envelope {
    headgate::prepare_envelope(Envelope {
        id: format!("job-{}-{}", payload.id, payload.t_us),
        kind: Job::TYPE.into(),
        payload: Job(payload).encode().expect("JSON"),
        queue: "default".into(),
        ..Default::default()
    })
    .expect("a valid envelope")
}

#[async_trait::async_trait]
impl Peer for Headgate {
    async fn connect(url: &str, _conc: usize) -> Self {
        let store = Arc::new(RedisStore::connect(url, "bench").await.expect("connect"));
        Self { client: headgate::Client::new(store.clone()), store }
    }

    async fn enqueue(&self, payload: Payload) {
        self.client.enqueue(&[envelope(payload)]).await.expect("enqueue");
    }

    async fn enqueue_batch(&self, payloads: Vec<Payload>) -> bool {
        let batch: Vec<_> = payloads.into_iter().map(envelope).collect();
        self.client.enqueue(&batch).await.expect("enqueue");
        true
    }

    async fn work(&self, conc: usize) {
        let mut registry = Registry::new();
        registry
            .register::<Job, _, _>(|_: JobCtx, job: Job| async move {
                handle(job.0).await;
                Ok(())
            })
            .expect("one handler");
        let mut config = WorkerConfig { capacity: conc as u32, ..Default::default() };
        if !at_defaults() {
            config.poll.floor = Duration::from_millis(1);
            config.poll.ceiling = Duration::from_millis(10);
        }
        let (worker, _handle) = Worker::new(self.store.clone(), registry, config);
        worker.run().await.expect("worker");
    }
}

fn main() {
    compare_common::main::<Headgate>();
}
