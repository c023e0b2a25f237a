//! The Rust port of asynq. Slots set; an idle worker looks for jobs every 10 ms instead of every 1 s.
use asynq::backend::RedisConnectionType;
use asynq::client::Client;
use asynq::config::ServerConfig;
use asynq::server::{Handler, Server};
use asynq::task::Task;
use compare_common::{Payload, Peer, at_defaults, handle};
use std::time::Duration;

#[derive(Clone)]
struct Asynq {
    url: String,
    client: Client,
}

struct OnJob;

#[async_trait::async_trait]
impl Handler for OnJob {
    async fn process_task(&self, task: Task) -> asynq::error::Result<()> {
        handle(serde_json::from_slice(task.get_payload()).expect("JSON")).await;
        Ok(())
    }
}

fn redis(url: &str) -> RedisConnectionType {
    RedisConnectionType::single(url.to_string()).expect("a URL")
}

#[async_trait::async_trait]
impl Peer for Asynq {
    async fn connect(url: &str, _conc: usize) -> Self {
        Self { url: url.to_string(), client: Client::new(redis(url)).await.expect("connect") }
    }

    async fn enqueue(&self, payload: Payload) {
        let bytes = serde_json::to_vec(&payload).expect("JSON");
        let task = Task::new("bench:job", &bytes).expect("a task");
        self.client.enqueue(task).await.expect("enqueue");
    }

    async fn work(&self, conc: usize) {
        let mut config = ServerConfig::new().concurrency(conc);
        if !at_defaults() {
            config = config.task_check_interval(Duration::from_millis(10));
        }
        let mut server = Server::new(redis(&self.url), config).await.expect("server");
        server.run(OnJob).await.expect("run");
    }
}

fn main() {
    compare_common::main::<Asynq>();
}
