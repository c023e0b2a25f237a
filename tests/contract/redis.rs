//! The store on a real Redis, on virtual time: the key `clock` of each queue.

use crate::{
    backend::{Backend, fresh_queue},
    support::{Ground, Keys, key_in},
};
use redis::AsyncCommands;
use sprag::{QueueName, RedisStore, Store, Timestamp, store::WorkerInfo};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Where this case stands, and the queues whose clocks it moves.
pub(crate) struct Redis {
    ground: Ground,
    store: Arc<RedisStore>,
    now: Mutex<Timestamp>,
    queues: Mutex<Vec<QueueName>>,
}

impl Redis {
    async fn set_clocks(&self) {
        let now = self.now().await.as_millis();
        let queues = self.queues.lock().expect("queues").clone();
        for queue in queues {
            let clock = key_in(&self.ground.namespace, &queue, "clock");
            let mut node = self.ground.node_of(&clock).await;
            let _: () = node.set(clock, now).await.expect("SET");
        }
    }
}

#[async_trait::async_trait]
impl Backend for Redis {
    async fn start() -> Self {
        let ground = Ground::start().await;
        let store = RedisStore::builder(&ground.url).namespace(ground.namespace.clone());
        let store = store.virtual_clock().build().expect("store");
        Self {
            store: Arc::new(store),
            now: Mutex::new(Timestamp::from_millis(1_764_500_000_000)),
            queues: Mutex::default(),
            ground,
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
        let queues = format!("{}:queues", self.ground.namespace);
        let mut node = self.ground.node_of(&queues).await;
        let _: () = node.srem(queues, queue.as_str()).await.expect("SREM");
    }

    /// The list of workers is kept by Redis' own clock.
    async fn age_beats(&self, by: Duration) {
        let workers = format!("{}:workers", self.ground.namespace);
        let mut redis = self.ground.node_of(&workers).await;
        let entries: Vec<(String, String)> = redis.hgetall(&workers).await.expect("HGETALL");
        for (id, entry) in entries {
            let mut info: WorkerInfo = serde_json::from_str(&entry).expect("an entry");
            let millis = u64::try_from(by.as_millis()).expect("short");
            info.seen_at = Timestamp::from_millis(info.seen_at.as_millis() - millis);
            let entry = serde_json::to_string(&info).expect("JSON");
            let _: () = redis.hset(&workers, id, entry).await.expect("HSET");
        }
    }

    async fn look_behind(&self, queue: &QueueName) {
        let namespace = &self.ground.namespace;
        let mut node = self.ground.node_of(&key_in(namespace, queue, "meta")).await;
        Keys::read_in(&mut node, namespace, queue).await.check();
    }
}
