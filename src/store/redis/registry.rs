//! Who works. A hash of the namespace that no script touches.

use super::{Inner, keys};
use crate::{
    model::{StoreError, Timestamp},
    store::WorkerInfo,
};
use redis::{Value, from_redis_value};
use std::collections::BTreeMap;

fn backend(error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(format!("worker registry: {error}"))
}

impl Inner {
    /// Redis' clock.
    async fn time(&self) -> Result<Timestamp, StoreError> {
        let answer = self.plain(&redis::cmd("TIME")).await?;
        let (seconds, micros): (u64, u64) = from_redis_value(answer).map_err(backend)?;
        Ok(Timestamp::from_millis(seconds * 1_000 + micros / 1_000))
    }

    pub(super) async fn beat(&self, worker: &WorkerInfo) -> Result<(), StoreError> {
        let info = WorkerInfo { seen_at: self.time().await?, ..worker.clone() };
        let mut set = redis::cmd("HSET");
        set.arg(keys::workers(&self.namespace)).arg(&info.id);
        set.arg(serde_json::to_string(&info).map_err(backend)?);
        self.plain(&set).await.map(drop)
    }

    pub(super) async fn forget(&self, ids: &[String]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut remove = redis::cmd("HDEL");
        remove.arg(keys::workers(&self.namespace)).arg(ids);
        self.plain(&remove).await.map(drop)
    }

    /// An entry that cannot be read is left out.
    pub(super) async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        let mut all = redis::cmd("HGETALL");
        all.arg(keys::workers(&self.namespace));
        let answer: Value = self.plain(&all).await?;
        let entries: BTreeMap<String, Vec<u8>> = from_redis_value(answer).map_err(backend)?;
        let (now, mut workers, mut old) = (self.time().await?, Vec::new(), Vec::new());
        for (id, text) in entries {
            let Ok(info) = serde_json::from_slice::<WorkerInfo>(&text) else { continue };
            match info.seen(now) {
                Some(info) => workers.push(info),
                None => old.push(id),
            }
        }
        self.forget(&old).await?;
        Ok(workers)
    }
}
