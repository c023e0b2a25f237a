//! Who works. A hash of the namespace that no script touches.

use super::{Inner, keys};
use crate::{
    model::{StoreError, Timestamp, WorkerId},
    store::{Channel, Wish, WorkerInfo},
};
use redis::{Value, from_redis_value};
use std::collections::BTreeMap;

/// What a worker is asked stands in the field of this and its id: ids have no space.
const WISH: &str = "wish ";

fn wish_field(worker: &str) -> String {
    format!("{WISH}{worker}")
}

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

    /// On the workers' hash.
    fn registry(&self, command: &str) -> redis::Cmd {
        let mut cmd = redis::cmd(command);
        cmd.arg(keys::workers(&self.namespace));
        cmd
    }

    pub(super) async fn beat(&self, worker: &WorkerInfo) -> Result<Option<Wish>, StoreError> {
        let info = worker.heard(self.time().await?);
        let text = serde_json::to_string(&info).map_err(backend)?;
        let (mut set, mut asked) = (self.registry("HSET"), self.registry("HGET"));
        set.arg(&info.id).arg(text);
        asked.arg(wish_field(&info.id));
        let wish = self.piped(&[set, asked]).await?.pop().unwrap_or(Value::Nil);
        let wish: Option<String> = from_redis_value(wish).map_err(backend)?;
        Ok(wish.as_deref().and_then(Wish::read))
    }

    pub(super) async fn ask(&self, worker: &WorkerId, wish: Wish) -> Result<(), StoreError> {
        let known = self.plain(self.registry("HGET").arg(worker.as_str())).await?;
        let known: Option<Vec<u8>> = from_redis_value(known).map_err(backend)?;
        let known = known.and_then(|text| serde_json::from_slice::<WorkerInfo>(&text).ok());
        let now = self.time().await?;
        if known.and_then(|info| info.seen(now)).is_none() {
            return Err(StoreError::NotFound(format!("worker {worker}")));
        }
        // Who was asked to stop is not asked for less.
        let command = if wish == Wish::Stop { "HSET" } else { "HSETNX" };
        let field = wish_field(worker.as_str());
        self.plain(self.registry(command).arg(field).arg(wish.as_str())).await?;
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(keys::channel(&self.namespace, Channel::Control));
        if let Err(error) = self.plain(publish.arg(format!("{wish} {worker}"))).await {
            tracing::debug!(%worker, %error, "not published; the worker is told at its next beat");
        }
        Ok(())
    }

    pub(super) async fn retire(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.forget(&[worker.to_string(), wish_field(worker.as_str())]).await
    }

    async fn forget(&self, fields: &[String]) -> Result<(), StoreError> {
        if fields.is_empty() {
            return Ok(());
        }
        self.plain(self.registry("HDEL").arg(fields)).await.map(drop)
    }

    /// Names of entries that nobody can read; none: there is something else than a hash.
    pub(super) async fn unreadable_workers(&self) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let kind: String =
            from_redis_value(self.plain(&self.registry("TYPE")).await?).map_err(backend)?;
        if kind != "hash" {
            return Ok((kind == "none").then(Vec::new));
        }
        let answer: Value = self.plain(&self.registry("HGETALL")).await?;
        let entries: BTreeMap<Vec<u8>, Vec<u8>> = from_redis_value(answer).map_err(backend)?;
        let is_read = |id: &[u8], text: &[u8]| {
            let id = std::str::from_utf8(id).ok()?;
            let worker = id.strip_prefix(WISH);
            let read = match worker {
                Some(_) => std::str::from_utf8(text).is_ok_and(|wish| Wish::read(wish).is_some()),
                None => serde_json::from_slice::<WorkerInfo>(text).is_ok(),
            };
            (read && WorkerId::new(worker.unwrap_or(id)).is_ok()).then_some(())
        };
        let unread = entries.into_iter().filter(|(id, text)| is_read(id, text).is_none());
        Ok(Some(unread.map(|(id, _)| id).collect()))
    }

    /// An entry that cannot be read is left out.
    pub(super) async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        let answer: Value = self.plain(&self.registry("HGETALL")).await?;
        let entries: BTreeMap<Vec<u8>, Vec<u8>> = from_redis_value(answer).map_err(backend)?;
        let named = |(id, text)| Some((String::from_utf8(id).ok()?, text));
        let entries: BTreeMap<_, _> = entries.into_iter().filter_map(named).collect();
        let (now, mut workers, mut old) = (self.time().await?, Vec::new(), Vec::new());
        for (id, text) in &entries {
            if let Some(worker) = id.strip_prefix(WISH) {
                // Asked of one that left at this moment.
                old.extend((!entries.contains_key(worker)).then(|| id.clone()));
                continue;
            }
            let Ok(info) = serde_json::from_slice::<WorkerInfo>(text) else { continue };
            match info.seen(now) {
                Some(info) => workers.push(info),
                None => old.extend([id.clone(), wish_field(id)]),
            }
        }
        self.forget(&old).await?;
        Ok(workers)
    }
}
