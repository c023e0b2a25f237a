//! A server, a proxy in front of it, stores on virtual time, and a look at all keys.

use crate::support::{Proxy, Server};
use redis::{Cmd, FromRedisValue, Value, aio::MultiplexedConnection, cmd, from_redis_value};
use sprag::{QueueName, RedisStore};
use std::{collections::BTreeMap, time::Duration};

/// Noon of some day: no test crosses midnight by a few hours.
const START: u64 = 1_764_504_000_000;

/// The sets whose members are jobs; a pending one is in its lane.
const STATES: [&str; 7] =
    ["scheduled", "retry", "active", "completed", "archived", "cancelled", "quarantined"];

/// A real one: nothing here waits for it.
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);
pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    redis: MultiplexedConnection,
}

impl Rig {
    pub(crate) async fn new() -> Self {
        let server = Server::start().await;
        let proxy = Proxy::in_front_of(&server).await;
        let redis = server.connection().await;
        let rig = Self { server, proxy, redis };
        rig.empty().await;
        rig
    }

    /// No keys but the clocks; the scripts stay loaded.
    pub(crate) async fn empty(&self) {
        self.run::<()>(&mut cmd("FLUSHALL")).await;
        self.set_clock(START).await;
    }

    /// A store that speaks through the proxy; a new one, so that it remembers nothing.
    pub(crate) fn store(&self) -> RedisStore {
        store(&self.proxy.url(), Duration::from_secs(60))
    }

    /// As [`store`](Self::store), but it repeats nothing.
    pub(crate) fn hasty_store(&self) -> RedisStore {
        store(&self.proxy.url(), Duration::ZERO)
    }

    /// A store that the proxy does not see.
    pub(crate) fn direct(&self) -> RedisStore {
        store(&self.server.url(), Duration::ZERO)
    }

    /// Runs a command past the library.
    pub(crate) async fn run<T: FromRedisValue>(&self, cmd: &mut Cmd) -> T {
        cmd.query_async(&mut self.redis.clone()).await.expect("a command")
    }

    /// Runs a command on a key of the queue: `rig.on("ZREM", "active", &["a"])`.
    pub(crate) async fn on<T: FromRedisValue>(&self, name: &str, of: &str, rest: &[&str]) -> T {
        self.run(cmd(name).arg(key(&queue(), of)).arg(rest)).await
    }

    pub(crate) async fn now(&self) -> u64 {
        self.on("GET", "clock", &[]).await
    }

    pub(crate) async fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).expect("short");
        self.set_clock(self.now().await + by).await;
    }

    async fn set_clock(&self, now: u64) {
        for queue in [queue(), other_queue()] {
            self.run::<()>(cmd("SET").arg(key(&queue, "clock")).arg(now)).await;
        }
    }

    /// All keys, in a form that does not depend on the order of hashes and sets.
    pub(crate) async fn dump(&self) -> Dump {
        let names: Vec<String> = self.run(cmd("KEYS").arg("*")).await;
        let (mut kinds, mut values) = (redis::pipe(), redis::pipe());
        for name in &names {
            kinds.cmd("TYPE").arg(name);
        }
        let kinds: Vec<String> = self.run_all(&kinds).await;
        for (name, kind) in names.iter().zip(&kinds) {
            match &**kind {
                "hash" => values.hgetall(name),
                "zset" => values.zrange_withscores(name, 0, -1),
                "list" => values.lrange(name, 0, -1),
                "set" => values.smembers(name),
                _ => values.get(name),
            };
        }
        let values: Vec<Value> = self.run_all(&values).await;
        let entries = kinds.iter().zip(values).map(|(kind, value)| entries(kind, value));
        Dump(names.iter().cloned().zip(entries).collect())
    }

    async fn run_all<T: FromRedisValue>(&self, pipe: &redis::Pipeline) -> Vec<T> {
        pipe.query_async(&mut self.redis.clone()).await.expect("commands")
    }
}

fn entries(kind: &str, value: Value) -> Vec<String> {
    let value = if kind == "string" { Value::Array(vec![value]) } else { value };
    let words: Vec<Vec<u8>> = from_redis_value(value).expect("strings");
    let words: Vec<_> = words.iter().map(|word| word.escape_ascii().to_string()).collect();
    match kind {
        "hash" | "zset" => sorted(words.chunks(2).map(|pair| pair.join(" = ")).collect()),
        "set" => sorted(words),
        _ => words,
    }
}

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words
}

fn store(url: &str, budget: Duration) -> RedisStore {
    RedisStore::builder(url).virtual_clock().repeat_budget(budget).build().expect("store")
}

/// The queue of every case.
pub(crate) fn queue() -> QueueName {
    QueueName::new("q").expect("queue")
}

/// A queue that nobody makes.
pub(crate) fn other_queue() -> QueueName {
    QueueName::new("none").expect("queue")
}

pub(crate) fn key(queue: &QueueName, name: &str) -> String {
    format!("sprag:{{{queue}}}:{name}")
}

/// Every key and what it holds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Dump(pub(crate) BTreeMap<String, Vec<String>>);

impl Dump {
    /// What jobs and operators can see of it: without the memory of callers and the wake token.
    pub(crate) fn of_jobs(mut self) -> Self {
        let hidden = ["answers", "expiry", "wake"];
        self.0.retain(|key, _| !hidden.iter().any(|name| key.ends_with(&format!(":{name}"))));
        self
    }

    /// What a key of the queue holds.
    pub(crate) fn get(&self, name: &str) -> &[String] {
        self.0.get(&key(&queue(), name)).map_or(&[], Vec::as_slice)
    }

    /// The first words of what a key of the queue holds: fields, members, entries.
    pub(crate) fn names(&self, name: &str) -> Vec<&str> {
        self.get(name).iter().map(|entry| entry.split(" = ").next().unwrap_or(entry)).collect()
    }

    /// Where a job's id is: lanes and states. A stale entry is no place.
    pub(crate) fn places_of(&self, id: &str) -> Vec<String> {
        let states = STATES;
        let lanes: Vec<_> = (0..10).map(|lane| format!("pending:{lane}")).collect();
        let names = lanes.iter().map(String::as_str).chain(states);
        let is_there = |name: &&str| {
            let is_entry = |entry: &&&str| id_of(entry) == id;
            let entries = self.names(name).iter().filter(is_entry).count();
            entries > name.strip_prefix("pending:").map_or(0, |lane| self.ghosts_of(lane, id))
        };
        names.filter(is_there).map(str::to_owned).collect()
    }

    fn ghosts_of(&self, lane: &str, id: &str) -> usize {
        let prefix = format!("{lane}:{id} = ");
        let count = self.get("ghosts").iter().find_map(|entry| entry.strip_prefix(&prefix));
        count.map_or(0, |text| {
            let stale = text.split(' ').next().expect("a word");
            stale.parse().expect("a number")
        })
    }

    /// The keys that hold something else in `other`.
    pub(crate) fn keys_changed(&self, other: &Self) -> Vec<String> {
        let keys = self.0.keys().chain(other.0.keys()).cloned();
        let changed: std::collections::BTreeSet<_> =
            keys.filter(|key| self.0.get(key) != other.0.get(key)).collect();
        changed.into_iter().collect()
    }
}

/// The id of a lane's entry: ` <token> <id>`, or only the id.
fn id_of(entry: &str) -> &str {
    entry.rsplit(' ').next().unwrap_or(entry)
}

/// Two dumps are equal, or the keys that differ are shown.
#[track_caller]
pub(crate) fn assert_same(before: &Dump, after: &Dump, what: &str) {
    if let Some(key) = before.keys_changed(after).first() {
        panic!("{what}: {key}\n  is     {:?}\n  not {:?}", after.0.get(key), before.0.get(key));
    }
}
