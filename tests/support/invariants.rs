//! What holds of a queue's keys at any moment, whatever was done.

use redis::{Value, aio::MultiplexedConnection, from_redis_value};
use sprag::{Namespace, QueueName};
use std::collections::{HashMap, HashSet};

/// A key of a queue.
pub fn key(queue: &QueueName, name: &str) -> String {
    key_in(&Namespace::default(), queue, name)
}

/// A key of a queue in a namespace.
pub fn key_in(namespace: &Namespace, queue: &QueueName, name: &str) -> String {
    format!("{namespace}:{{{queue}}}:{name}")
}

/// All that a queue has, read in one transaction: calls of other tasks may go on meanwhile.
#[derive(Debug)]
pub struct Keys {
    lanes: Vec<(usize, Vec<String>)>,
    zsets: HashMap<&'static str, HashSet<String>>,
    hashes: HashMap<&'static str, HashMap<String, Vec<u8>>>,
}

const ZSETS: [&str; 8] =
    ["scheduled", "retry", "active", "completed", "archived", "cancelled", "quarantined", "expiry"];
const HASHES: [&str; 14] = [
    "jobs",
    "holder",
    "tries",
    "errors",
    "results",
    "endings",
    "unique",
    "ghosts",
    "meta",
    "progress",
    "seen",
    "quarantine",
    "crashes",
    "answers",
];

/// What `ghosts` holds of an id in a lane: so many entries are stale, live is the one with the
/// token.
#[derive(Debug, Default)]
struct Ghost {
    stale: i64,
    token: String,
}

impl Ghost {
    fn of(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let (stale, token) = text.split_once(' ').expect("two words");
        Self { stale: stale.parse().expect("a number"), token: token.to_owned() }
    }
}

/// An entry is the id, or ` <token> <id>`.
fn token_and_id(entry: &str) -> (&str, &str) {
    entry.strip_prefix(' ').map_or(("", entry), |rest| rest.split_once(' ').expect("two words"))
}

impl Keys {
    pub async fn read(connection: &mut MultiplexedConnection, queue: &QueueName) -> Self {
        Self::read_in(connection, &Namespace::default(), queue).await
    }

    /// Of a namespace; in a cluster, from the node that has the queue.
    pub async fn read_in(
        connection: &mut MultiplexedConnection,
        namespace: &Namespace,
        queue: &QueueName,
    ) -> Self {
        let key = |name: &str| key_in(namespace, queue, name);
        let mut all = redis::pipe();
        all.atomic();
        for lane in 0..10 {
            all.lrange(key(&format!("pending:{lane}")), 0, -1);
        }
        for name in ZSETS {
            all.zrange(key(name), 0, -1);
        }
        for name in HASHES {
            all.hgetall(key(name));
        }
        let values: Vec<Value> = all.query_async(connection).await.expect("read");
        let mut values = values.into_iter();
        let mut next = || values.next().expect("a value per command");
        Self {
            lanes: (0..10).map(|lane| (lane, from_redis_value(next()).expect("list"))).collect(),
            zsets: ZSETS.map(|name| (name, from_redis_value(next()).expect("zset"))).into(),
            hashes: HASHES.map(|name| (name, from_redis_value(next()).expect("hash"))).into(),
        }
    }

    fn number(&self, name: &str) -> i64 {
        let value =
            self.hashes["meta"].get(name).map_or("0".into(), |v| String::from_utf8_lossy(v));
        value.parse().expect("a number")
    }

    /// Panics at what is wrong.
    pub fn check(&self) {
        self.check_unfinished();
        self.check_places();
        self.check_leases();
        self.check_leftovers();
    }

    /// DESIGN §6: what the counter says is what the keys hold.
    fn check_unfinished(&self) {
        let entries: usize = self.lanes.iter().map(|(_, ids)| ids.len()).sum();
        let placed: usize =
            ["scheduled", "retry", "active"].map(|z| self.zsets[z].len()).iter().sum();
        let ghosts = self.number("ghosts");
        assert_eq!(self.number("unfinished"), (entries + placed) as i64 - ghosts, "unfinished");
        let counted: i64 = self.hashes["ghosts"]
            .values()
            .map(|text| Ghost::of(text).stale)
            .inspect(|stale| assert!(*stale > 0, "a ghost of {stale}"))
            .sum();
        assert_eq!(ghosts, counted, "ghosts");
    }

    /// Every record has one place, every place a record.
    fn check_places(&self) {
        let mut places: HashMap<&str, i64> = HashMap::new();
        for (lane, ids) in &self.lanes {
            let mut tokens: HashMap<&str, Vec<&str>> = HashMap::new();
            for entry in ids {
                let (token, id) = token_and_id(entry);
                tokens.entry(id).or_default().push(token);
            }
            for (id, tokens) in &tokens {
                let ghost = self.hashes["ghosts"].get(&format!("{lane}:{id}"));
                let ghost = ghost.map(|text| Ghost::of(text)).unwrap_or_default();
                let live = tokens.len() as i64 - ghost.stale;
                assert!((0..=1).contains(&live), "{id} in {lane}: {tokens:?}, {ghost:?}");
                if ghost.stale > 0 {
                    let bear = tokens.iter().filter(|token| **token == ghost.token).count() as i64;
                    assert_eq!(bear, live, "{id} in {lane}: {tokens:?}, {ghost:?}");
                    assert_eq!(live == 0, ghost.token == "-", "{id} in {lane}: {ghost:?}");
                }
                *places.entry(id).or_default() += live;
            }
            let prefix = format!("{lane}:");
            for name in self.hashes["ghosts"].keys() {
                let id = name.strip_prefix(&prefix);
                assert!(id.is_none_or(|id| tokens.contains_key(id)), "{name} has no entry");
            }
            self.check_tokens(ids);
        }
        for name in ZSETS.iter().filter(|name| **name != "expiry") {
            self.zsets[name].iter().for_each(|id| *places.entry(id).or_default() += 1);
        }
        places.retain(|_, count| *count != 0);
        for (id, count) in &places {
            assert_eq!(*count, 1, "{id} is in several places");
        }
        let placed: HashSet<&str> = places.into_keys().collect();
        let records: HashSet<&str> = self.hashes["jobs"].keys().map(String::as_str).collect();
        assert_eq!(placed, records, "places and records");
    }

    /// No two entries bear the same token, and none one that is yet to come.
    fn check_tokens(&self, entries: &[String]) {
        let given = self.number("entries");
        let mut once = HashSet::new();
        for (token, _) in entries.iter().map(|entry| token_and_id(entry)) {
            if !token.is_empty() {
                assert!(once.insert(token), "the token {token} comes twice");
                assert!(token.parse::<i64>().expect("a number") <= given, "{token} of {given}");
            }
        }
    }

    fn check_leases(&self) {
        let holders: HashSet<String> = self.hashes["holder"].keys().cloned().collect();
        assert_eq!(self.zsets["active"], holders, "leases and holders");
    }

    /// Nothing is kept of a job that is gone, and what is counted is there so often.
    fn check_leftovers(&self) {
        for name in ["tries", "errors", "results", "endings"] {
            for id in self.hashes[name].keys() {
                assert!(self.hashes["jobs"].contains_key(id), "{name} of {id}, which is gone");
            }
        }
        for id in self.hashes["progress"].keys() {
            assert!(self.zsets["active"].contains(id), "progress of {id}, which is not active");
        }
        let counters = [
            ("tried", "tries"),
            ("remembered", "seen"),
            ("quarantined", "quarantine"),
            ("crashes", "crashes"),
        ];
        for (counter, hash) in counters {
            assert_eq!(self.number(counter), self.hashes[hash].len() as i64, "{counter}");
        }
        self.check_keys();
        self.check_timers();
    }

    /// A unique key belongs to an unfinished job, but for one that is held by time alone.
    fn check_keys(&self) {
        for (token, value) in &self.hashes["unique"] {
            let value = String::from_utf8_lossy(value);
            let (id, mode) = value.split_once(' ').unwrap_or((&value, ""));
            if mode.starts_with("throttle") {
                let timer = format!("unique {token}");
                assert!(self.zsets["expiry"].contains(&timer), "{timer} ends some day");
                continue;
            }
            let finished = ["completed", "archived", "cancelled", "quarantined"];
            assert!(
                self.hashes["jobs"].contains_key(id),
                "{token} is held by {value}, which is gone"
            );
            assert!(
                !finished.iter().any(|z| self.zsets[z].contains(id)),
                "{token}: {id} is finished"
            );
            let claimed = mode == "debounce" && self.zsets["active"].contains(id);
            assert!(!claimed, "{token}: debounced {id} is claimed");
        }
    }

    /// Whatever ends by time has its timer.
    fn check_timers(&self) {
        for (hash, what) in [("seen", "seen"), ("crashes", "crashes"), ("answers", "answers")] {
            for name in self.hashes[hash].keys() {
                let timer = format!("{what} {name}");
                assert!(self.zsets["expiry"].contains(&timer), "{timer} ends some day");
            }
        }
        for timer in self.zsets["expiry"].iter() {
            let Some(id) = timer.strip_prefix("deadline ") else { continue };
            assert!(self.hashes["jobs"].contains_key(id), "{timer} of a job that is gone");
        }
    }
}
