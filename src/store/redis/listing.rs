//! The list of queues: a set of the namespace that no script touches.

use super::{Inner, keys};
use crate::model::{QueueName, StoreError};
use redis::{FromRedisValue, Value, from_redis_value};
use std::sync::PoisonError;

impl Inner {
    /// Puts the queue on the list of queues: when a script made it, and once per process, since
    /// the one who made it may have died before it came to this.
    pub(super) async fn register(&self, queue: &QueueName, made: bool) -> Result<(), StoreError> {
        let known = || self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        if !made && known().contains(queue) {
            return Ok(());
        }
        let on_list = |command| {
            let mut cmd = redis::cmd(command);
            cmd.arg(keys::queues(&self.namespace)).arg(queue.as_str());
            cmd
        };
        // Asked first: when memory is full, adding is refused even if there is nothing to add.
        let listed = !made && self.plain(&on_list("SISMEMBER")).await? == Value::Int(1);
        if !listed {
            self.plain(&on_list("SADD")).await?;
            if made {
                self.say_layout().await?;
            }
        }
        known().insert(queue.clone());
        Ok(())
    }

    /// Takes the queue off the list.
    pub(super) async fn unregister(&self, queue: &QueueName) -> Result<(), StoreError> {
        let mut remove = redis::cmd("SREM");
        remove.arg(keys::queues(&self.namespace)).arg(queue.as_str());
        self.plain(&remove).await?;
        self.registered.lock().unwrap_or_else(PoisonError::into_inner).remove(queue);
        Ok(())
    }

    /// Puts those of the queues that are there on the list: with one command if none was lost.
    pub(super) async fn list_again(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        if queues.is_empty() {
            return Ok(());
        }
        let mut listed = redis::cmd("SMISMEMBER");
        listed.arg(keys::queues(&self.namespace));
        for queue in queues {
            listed.arg(queue.as_str());
        }
        let listed: Vec<bool> = read(self.plain(&listed).await?)?;
        for (queue, _) in queues.iter().zip(listed).filter(|(_, listed)| !listed) {
            // A queue that somebody has made counts its unfinished jobs, be it to none.
            let mut made = redis::cmd("HEXISTS");
            made.arg(keys::KeyWriter::new(&self.namespace, queue).key("meta")).arg("unfinished");
            if read(self.plain(&made).await?)? {
                self.register(queue, true).await?;
            }
        }
        Ok(())
    }
}

fn read<T: FromRedisValue>(answer: Value) -> Result<T, StoreError> {
    from_redis_value(answer).map_err(|error| StoreError::Backend(format!("queue list: {error}")))
}
