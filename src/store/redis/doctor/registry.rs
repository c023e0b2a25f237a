//! The list of queues against the queues that are there.

use super::{Doctor, Finding, RedisStore, queue::PATIENCE};
use crate::{
    model::{QueueName, StoreError},
    store::{
        Store,
        redis::{Inner, keys},
    },
};
use redis::{Cmd, FromRedisValue, from_redis_value};
use std::collections::BTreeSet;

/// Keys of the database that are passed over in one call.
const SCAN: usize = 1_000;

impl Inner {
    async fn asked<T: FromRedisValue>(&self, cmd: &Cmd) -> Result<T, StoreError> {
        let answer = self.plain(cmd).await?;
        from_redis_value(answer)
            .map_err(|error| StoreError::Backend(format!("queue list: {error}")))
    }

    async fn is_listed(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let mut cmd = redis::cmd("SISMEMBER");
        self.asked(cmd.arg(keys::queues(&self.namespace)).arg(queue.as_str())).await
    }

    async fn is_made(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let mut cmd = redis::cmd("EXISTS");
        let mut names = keys::KeyWriter::new(&self.namespace, queue);
        self.asked(cmd.arg(names.key("meta")).arg(names.key("jobs"))).await.map(|n: u64| n > 0)
    }

    /// Names on the list that no queue can have; none: it is something else than a set.
    async fn list_faults(&self, mend: bool) -> Result<Option<Vec<Finding>>, StoreError> {
        let list = keys::queues(&self.namespace);
        let kind: String = self.asked(redis::cmd("TYPE").arg(&list)).await?;
        if kind != "set" {
            return Ok((kind == "none").then(Vec::new));
        }
        let members: BTreeSet<Vec<u8>> = self.asked(redis::cmd("SMEMBERS").arg(&list)).await?;
        let is_name = |name: &Vec<u8>| {
            std::str::from_utf8(name).is_ok_and(|name| QueueName::new(name).is_ok())
        };
        let mut findings = Vec::new();
        for member in members.iter().filter(|member| !is_name(member)) {
            let (name, mut remove) = (member.escape_ascii().to_string(), redis::cmd("SREM"));
            let mut finding = Finding::new("list_member", format!("{list} has \"{name}\""));
            if mend {
                finding.repaired = self.asked(remove.arg(&list).arg(member)).await?;
            }
            finding.id = Some(name);
            findings.push(finding);
        }
        Ok(Some(findings))
    }

    async fn worker_faults(&self) -> Result<Vec<Finding>, StoreError> {
        let name = keys::workers(&self.namespace);
        let Some(unread) = self.unreadable_workers().await? else {
            return Ok(vec![Finding::new("workers_type", format!("{name} is no hash"))]);
        };
        let unread = unread.iter().map(|id| id.escape_ascii().to_string());
        let told = |id: String| Finding {
            id: Some(id.clone()),
            ..Finding::new("worker_entry", format!("the entry \"{id}\" of {name} cannot be read"))
        };
        Ok(unread.map(told).collect())
    }

    /// The queues that have keys, whatever the list says.
    async fn made_queues(&self) -> Result<BTreeSet<QueueName>, StoreError> {
        let (mut cursor, mut made) = ("0".to_owned(), BTreeSet::new());
        let (begin, end) = (format!("{}:{{", self.namespace), "}:meta");
        loop {
            let mut scan = redis::cmd("SCAN");
            // No letter of a namespace means something in a pattern.
            scan.arg(&cursor).arg("MATCH").arg(format!("{begin}*{end}")).arg("COUNT").arg(SCAN);
            let (next, found): (String, Vec<Vec<u8>>) = self.asked(&scan).await?;
            let name = |key: &Vec<u8>| {
                let key = String::from_utf8_lossy(key).into_owned();
                QueueName::new(key.strip_prefix(&begin)?.strip_suffix(end)?).ok()
            };
            made.extend(found.iter().filter_map(name));
            cursor = next;
            if cursor == "0" {
                return Ok(made);
            }
        }
    }
}

impl Doctor {
    /// The queues that are there or listed, or of the named ones those; with what is wrong with the
    /// list.
    ///
    /// # Errors
    /// See [`Doctor`].
    pub async fn queues(
        &self,
        named: &[QueueName],
        mend: bool,
    ) -> Result<(Vec<QueueName>, Vec<Finding>), StoreError> {
        let mut findings = self.inner.worker_faults().await?;
        let mut queues: BTreeSet<QueueName> = named.iter().cloned().collect();
        let list = self.inner.list_faults(mend).await?;
        let is_list = list.is_some();
        match list {
            Some(members) => findings.extend(members),
            None => {
                let name = keys::queues(&self.inner.namespace);
                findings.push(Finding::new("list_type", format!("{name} is no set")));
            }
        }
        if named.is_empty() {
            for (_, server) in self.inner.by_server().await? {
                queues.extend(server.made_queues().await?);
            }
            if is_list {
                queues.extend(RedisStore(self.inner.clone(), None).queues().await?);
            }
        }
        let mut suspects = Vec::new();
        for queue in &queues {
            let made = self.inner.is_made(queue).await?;
            let listed = if is_list { self.inner.is_listed(queue).await? } else { made };
            if !named.is_empty() && !listed && !made {
                return Err(StoreError::NotFound(format!("queue {queue}")));
            }
            suspects.extend((listed != made).then_some(queue));
        }
        if !suspects.is_empty() {
            // Who makes or deletes a queue does so in two steps.
            tokio::time::sleep(PATIENCE).await;
        }
        for queue in suspects {
            findings.extend(self.listing(queue, mend).await?);
        }
        Ok((queues.into_iter().collect(), findings))
    }

    async fn listing(&self, queue: &QueueName, mend: bool) -> Result<Option<Finding>, StoreError> {
        let (listed, made) = (self.inner.is_listed(queue).await?, self.inner.is_made(queue).await?);
        let (check, message) = match (listed, made) {
            (false, true) => ("unlisted", format!("queue {queue} is not on the list")),
            (true, false) => ("not_there", format!("queue {queue} is listed and has no keys")),
            _ => return Ok(None),
        };
        let mut finding = Finding::of(queue, check, message);
        if mend {
            if made {
                self.inner.register(queue, true).await?;
            } else {
                self.inner.unregister(queue).await?;
                // Somebody may have made it at this moment.
                if self.inner.is_made(queue).await? {
                    self.inner.register(queue, true).await?;
                }
            }
            finding.repaired = true;
        }
        Ok(Some(finding))
    }
}
