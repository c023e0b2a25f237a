//! What the server says of itself.

use super::{Doctor, Finding, Inner, advice};
use crate::{
    model::{QueueName, StoreError},
    store::redis::access::Role,
};
use redis::{Cmd, FromRedisValue, Value, from_redis_value};
use std::{
    collections::HashMap,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

const PINGS: usize = 10;
/// What was read.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// What the server did not tell, and why.
    pub(super) untold: Vec<(&'static str, String)>,
    /// INFO, by name.
    pub(super) info: HashMap<String, String>,
    /// CONFIG, as far as it may be read.
    pub(super) config: HashMap<String, String>,
    /// This machine's clock less the server's, ms.
    pub(super) clock_ahead: i64,
    /// The median of some PINGs, µs.
    pub(super) ping: u64,
    /// Entries of the slow log that are scripts over 10 ms.
    pub(super) slow_scripts: Option<usize>,
    /// By role, commands that the user may not run; none: the server does not tell.
    pub(super) lacking: Option<Vec<(Role, Vec<String>)>>,
    pub(super) user: String,
    /// Queues and how many jobs they hold.
    pub(super) queues: Vec<(String, u64)>,
}

impl Facts {
    /// An answer, or a note that there is none.
    fn told<T: FromRedisValue>(
        &mut self,
        check: &'static str,
        answer: Result<Value, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let error = match answer {
            Ok(answer) => return Ok(from_redis_value(answer).ok()),
            Err(error @ StoreError::Unavailable(_)) => return Err(error),
            Err(error) => error,
        };
        if self.untold.iter().all(|(known, _)| *known != check) {
            self.untold.push((check, error.to_string()));
        }
        Ok(None)
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl Inner {
    /// An answer, if the user may have it and it can be read.
    async fn maybe<T: FromRedisValue>(&self, cmd: &Cmd) -> Result<Option<T>, StoreError> {
        match self.plain(cmd).await {
            Ok(answer) => Ok(from_redis_value(answer).ok()),
            Err(error @ StoreError::Unavailable(_)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Of each role what the user may not run; none: the server does not tell.
    async fn lacking(
        &self,
        queue: &QueueName,
    ) -> Result<Option<Vec<(Role, Vec<String>)>>, StoreError> {
        let refused = match self.refused(&Role::ALL, queue).await {
            Ok(Some(refused)) => refused,
            Ok(None) => return Ok(None),
            Err(fault) if fault.may_pass() => return Err(fault.error),
            // Not even a script may be called.
            Err(fault) if fault.forbidden => {
                let lack = |role| (role, vec!["EVALSHA or SCRIPT LOAD".to_owned()]);
                return Ok(Some(Role::ALL.map(lack).into()));
            }
            Err(fault) => return Err(fault.error),
        };
        let of = |role: Role| (role, role.missing(&refused));
        Ok(Some(Role::ALL.map(of).into_iter().filter(|(_, lack)| !lack.is_empty()).collect()))
    }

    async fn facts(&self) -> Result<Facts, StoreError> {
        let mut facts = Facts::default();
        let info = facts.told("info_refused", self.plain(redis::cmd("INFO").arg("all")).await)?;
        let lines: String = info.unwrap_or_default();
        let pairs = lines.lines().filter_map(|line| line.split_once(':'));
        facts.info = pairs.map(|(k, v)| (k.to_owned(), v.trim().to_owned())).collect();
        for name in ["maxclients", "min-replicas-to-write", "save"] {
            let found = self.plain(redis::cmd("CONFIG").arg("GET").arg(name)).await;
            let found: Option<HashMap<String, String>> = facts.told("config_refused", found)?;
            facts.config.extend(found.unwrap_or_default());
        }
        let mut pings = Vec::new();
        for _ in 0..PINGS {
            let sent = Instant::now();
            self.maybe::<Value>(&redis::cmd("PING")).await?;
            pings.push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        pings.sort_unstable();
        facts.ping = pings[PINGS / 2];
        let before = now_ms();
        if let Some((s, us)) = self.maybe::<(i64, i64)>(&redis::cmd("TIME")).await? {
            facts.clock_ahead = (before + now_ms()) / 2 - (s * 1_000 + us / 1_000);
        }
        type Entry = (Value, Value, u64, Vec<Vec<u8>>, Value, Value);
        let slow = self.plain(redis::cmd("SLOWLOG").arg("GET").arg(128)).await;
        let slow: Option<Vec<Entry>> = facts.told("slowlog_refused", slow)?;
        let is_script = |(_, _, us, words, _, _): &&Entry| {
            let name = words.first().map(|word| word.to_ascii_uppercase());
            *us > 10_000 && name.is_some_and(|name| name.starts_with(b"EVAL"))
        };
        facts.slow_scripts = slow.map(|slow| slow.iter().filter(is_script).count());
        let user: Option<String> = self.maybe(redis::cmd("ACL").arg("WHOAMI")).await?;
        facts.user = user.unwrap_or_else(|| self.user.clone());
        Ok(facts)
    }
}

impl Doctor {
    /// What is wrong with the server, or with each master of a cluster: [`Finding::id`] is its address
    /// there; `queues` tells how many jobs each holds.
    ///
    /// # Errors
    /// See [`Doctor`].
    pub async fn server(&self, queues: &[(QueueName, u64)]) -> Result<Vec<Finding>, StoreError> {
        let queues: Vec<_> = queues.iter().map(|(name, jobs)| (name.to_string(), *jobs)).collect();
        // Rights may be for some queues only.
        let asked = queues.first().map(|(name, _)| QueueName::new(name)).transpose()?;
        let asked = asked.map_or_else(|| QueueName::new("doctor"), Ok)?;
        let mut findings = Vec::new();
        let lacking = match self.or_told(None, self.inner.lacking(&asked).await)? {
            Ok(lacking) => lacking,
            Err(told) => {
                findings.push(told);
                None
            }
        };
        for (name, server) in self.inner.by_server().await? {
            let away =
                |error: String| Finding { id: name.clone(), ..Finding::new("node_away", error) };
            if name.as_ref().is_some_and(|name| self.away.contains(name)) {
                findings.push(away("no answer".to_owned()));
                continue;
            }
            let mut facts = match self.or_told(None, server.facts().await)? {
                Ok(facts) => facts,
                Err(told) => {
                    findings.push(away(told.message));
                    continue;
                }
            };
            (facts.queues, facts.lacking) = (queues.clone(), lacking.clone());
            let judged = advice::judge(&facts).into_iter();
            findings.extend(judged.map(|finding| Finding { id: name.clone(), ..finding }));
        }
        Ok(findings)
    }
}
