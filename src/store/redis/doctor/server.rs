//! What the server says of itself.

use super::{Doctor, Finding, Inner, advice};
use crate::{
    model::{QueueName, StoreError},
    store::redis::keys::KeyWriter,
};
use redis::{Cmd, FromRedisValue, Value, from_redis_value};
use std::{
    collections::HashMap,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

const PINGS: usize = 10;
/// What scripts and the library run, each with arguments as many as it needs.
const COMMANDS: &[&str] = &[
    "BLPOP key 1",
    "EVALSHA x 0",
    "EXISTS key",
    "HDEL key a",
    "HEXISTS key a",
    "HGET key a",
    "HINCRBY key a 1",
    "HKEYS key",
    "HLEN key",
    "HMGET key a",
    "HSCAN key 0",
    "HSET key a b",
    "LLEN key",
    "LPUSH key a",
    "LRANGE key 0 1",
    "LTRIM key 0 1",
    "PING",
    "PUBLISH channel a",
    "RPUSH key a",
    "SADD queues a",
    "SCRIPT LOAD a",
    "SISMEMBER queues a",
    "SMEMBERS queues",
    "SREM queues a",
    "SUBSCRIBE channel",
    "TIME",
    "UNLINK key",
    "ZADD key 1 a",
    "ZCARD key",
    "ZCOUNT key 0 1",
    "ZMSCORE key a",
    "ZRANGE key 0 1",
    "ZRANGEBYSCORE key 0 1",
    "ZRANK key a",
    "ZREM key a",
    "ZSCAN key 0",
    "ZSCORE key a",
];

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
    /// Commands that are refused; none: it may not be asked.
    pub(super) refused: Option<Vec<String>>,
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

    async fn refused(&self, user: &str) -> Result<Option<Vec<String>>, StoreError> {
        let queue = QueueName::new("doctor")?;
        let mut refused = Vec::new();
        for command in COMMANDS {
            let mut dry_run = redis::cmd("ACL");
            dry_run.arg("DRYRUN").arg(user);
            for word in command.split(' ') {
                match word {
                    "key" => dry_run.arg(KeyWriter::new(&self.namespace, &queue).key("jobs")),
                    "queues" => dry_run.arg(format!("{}:queues", self.namespace)),
                    "channel" => dry_run.arg(format!("{}:done", self.namespace)),
                    word => dry_run.arg(word),
                };
            }
            match self.maybe::<Value>(&dry_run).await? {
                None => return Ok(None),
                Some(Value::Okay) => {}
                Some(_) => refused.extend(command.split(' ').next().map(str::to_owned)),
            }
        }
        Ok(Some(refused))
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
        facts.user = user.unwrap_or_else(|| "default".to_owned());
        facts.refused = self.refused(&facts.user).await?;
        Ok(facts)
    }
}

impl Doctor {
    /// What is wrong with the server; `queues` tells how many jobs each holds.
    ///
    /// # Errors
    /// See [`Doctor`].
    pub async fn server(&self, queues: &[(QueueName, u64)]) -> Result<Vec<Finding>, StoreError> {
        let mut facts = self.inner.facts().await?;
        facts.queues = queues.iter().map(|(name, jobs)| (name.to_string(), *jobs)).collect();
        Ok(advice::judge(&facts))
    }
}
