//! The list of queues against the queues that are there.

use super::{Doctor, Finding, RedisStore, queue::PATIENCE};
use crate::{
    model::{QueueName, StoreError},
    store::{
        Store,
        redis::{Inner, keys},
    },
};
use futures_util::future::join_all;
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
        &mut self,
        named: &[QueueName],
        mend: bool,
    ) -> Result<(Vec<QueueName>, Vec<Finding>), StoreError> {
        let (workers, list) =
            tokio::join!(self.inner.worker_faults(), self.inner.list_faults(mend));
        let mut findings = self.or_told(None, workers)?.unwrap_or_else(|told| vec![told]);
        let mut queues: BTreeSet<QueueName> = named.iter().cloned().collect();
        let mut is_list = false;
        match self.or_told(None, list)? {
            Ok(Some(members)) => {
                is_list = true;
                findings.extend(members);
            }
            Ok(None) => {
                let name = keys::queues(&self.inner.namespace);
                findings.push(Finding::new("list_type", format!("{name} is no set")));
            }
            Err(told) => findings.push(told),
        }
        if named.is_empty() {
            let servers = self.inner.by_server().await?;
            let made = join_all(servers.iter().map(|(_, server)| server.made_queues())).await;
            for ((name, _), made) in servers.iter().zip(made) {
                match self.or_told(None, made)? {
                    Ok(made) => queues.extend(made),
                    Err(told) => {
                        self.away.extend(name.clone());
                        findings.push(Finding { id: name.clone(), ..told });
                    }
                }
            }
            if is_list {
                queues.extend(RedisStore(self.inner.clone(), None).queues().await?);
            }
        }
        let there = join_all(queues.iter().map(|queue| self.is_there(queue, is_list))).await;
        let (mut suspects, mut seen) = (Vec::new(), Vec::new());
        for (queue, there) in queues.into_iter().zip(there) {
            match self.or_told(Some(&queue), there)? {
                Ok((false, false)) if !named.is_empty() => {
                    return Err(StoreError::NotFound(format!("queue {queue}")));
                }
                Ok((listed, made)) => {
                    suspects.extend((listed != made).then(|| queue.clone()));
                    seen.push(queue);
                }
                Err(told) => findings.push(told),
            }
        }
        if !suspects.is_empty() {
            // Who makes or deletes a queue does so in two steps.
            tokio::time::sleep(PATIENCE).await;
        }
        for queue in &suspects {
            findings.extend(self.listing(queue, mend).await?);
        }
        Ok((seen, findings))
    }

    /// Whether a queue is listed, as far as the list can be read, and whether it has keys.
    async fn is_there(&self, queue: &QueueName, is_list: bool) -> Result<(bool, bool), StoreError> {
        let made = self.inner.is_made(queue).await?;
        Ok((if is_list { self.inner.is_listed(queue).await? } else { made }, made))
    }

    /// What could not be looked at is a finding, and stops nothing else; but a server that is away, where
    /// it is the only one, is the caller's error.
    pub(super) fn or_told<T>(
        &self,
        queue: Option<&QueueName>,
        found: Result<T, StoreError>,
    ) -> Result<Result<T, Finding>, StoreError> {
        match found {
            Ok(found) => Ok(Ok(found)),
            Err(error @ StoreError::Unavailable(_)) if !self.inner.link.is_cluster() => Err(error),
            Err(error) => Ok(Err(match queue {
                Some(queue) => Finding::of(queue, "failed", error.to_string()),
                None => Finding::new("lists", error.to_string()),
            })),
        }
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
