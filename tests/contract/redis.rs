//! The store on a real Redis, on virtual time: the key `clock` of each queue.

use crate::{
    backend::{Backend, fresh_queue},
    support::{Keys, Server, key},
};
use redis::{AsyncCommands, aio::MultiplexedConnection};
use sprag::{QueueName, RedisStore, Store, Timestamp, store::WorkerInfo};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const QUEUES: &str = "sprag:queues";
const WORKERS: &str = "sprag:workers";

/// A server of this case's own, and the queues whose clocks it moves.
pub(crate) struct Redis {
    _server: Server,
    store: Arc<RedisStore>,
    connection: MultiplexedConnection,
    now: Mutex<Timestamp>,
    queues: Mutex<Vec<QueueName>>,
}

impl Redis {
    async fn set_clocks(&self) {
        let now = self.now().await.as_millis();
        let queues = self.queues.lock().expect("queues").clone();
        for queue in queues {
            let _: () = self.connection.clone().set(key(&queue, "clock"), now).await.expect("SET");
        }
    }
}

#[async_trait::async_trait]
impl Backend for Redis {
    async fn start() -> Self {
        let server = Server::start().await;
        let store = RedisStore::builder(server.url()).virtual_clock().build().expect("store");
        Self {
            store: Arc::new(store),
            connection: server.connection().await,
            now: Mutex::new(Timestamp::from_millis(1_764_500_000_000)),
            queues: Mutex::default(),
            _server: server,
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, by: Duration) {
        {
            let mut now = self.now.lock().expect("now");
            *now = *now + by;
        }
        self.set_clocks().await;
    }

    async fn now(&self) -> Timestamp {
        *self.now.lock().expect("now")
    }

    async fn queue(&self) -> QueueName {
        let queue = fresh_queue();
        self.queues.lock().expect("queues").push(queue.clone());
        self.set_clocks().await;
        queue
    }

    async fn lose_from_list(&self, queue: &QueueName) {
        let _: () = self.connection.clone().srem(QUEUES, queue.as_str()).await.expect("SREM");
    }

    /// The list of workers is kept by Redis' own clock.
    async fn age_beats(&self, by: Duration) {
        let mut redis = self.connection.clone();
        let entries: Vec<(String, String)> = redis.hgetall(WORKERS).await.expect("HGETALL");
        for (id, entry) in entries {
            let mut info: WorkerInfo = serde_json::from_str(&entry).expect("an entry");
            let millis = u64::try_from(by.as_millis()).expect("short");
            info.seen_at = Timestamp::from_millis(info.seen_at.as_millis() - millis);
            let entry = serde_json::to_string(&info).expect("JSON");
            let _: () = redis.hset(WORKERS, id, entry).await.expect("HSET");
        }
    }

    async fn look_behind(&self, queue: &QueueName) {
        Keys::read(&mut self.connection.clone(), queue).await.check();
    }
}
