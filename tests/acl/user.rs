//! A server, and users on it.

use crate::support::{Address, Server};
use redis::{FromRedisValue, cmd};
use sprag::{Client, Envelope, Job, Namespace, QueueName, RedisStore, WorkerId, store::Role};
use std::time::Duration;

pub(crate) const PASSWORD: &str = "s3cr3t";
pub(crate) const LEASE: Duration = Duration::from_secs(30);

#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Task(pub(crate) u32);

impl Job for Task {
    const KIND: &'static str = "task";
    const QUEUE: &'static str = "q";
}

pub(crate) fn queue() -> QueueName {
    QueueName::new("q").expect("queue")
}

pub(crate) fn worker() -> WorkerId {
    WorkerId::new("w").expect("worker")
}

pub(crate) fn job() -> Envelope {
    Client::new(sprag::MemoryStore::new()).enqueue(Task(1)).envelope().expect("valid")
}

pub(crate) struct World {
    pub(crate) server: Server,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self { server: Server::start().await }
    }

    /// As administrator.
    pub(crate) async fn run<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = cmd(words[0]);
        let mut connection = self.server.connection().await;
        command.arg(&words[1..]).query_async(&mut connection).await.expect("a command")
    }

    /// Makes a user, or makes him anew.
    pub(crate) async fn user(&self, name: &str, rules: &[String]) {
        let password = format!(">{PASSWORD}");
        let mut words = vec!["ACL", "SETUSER", name, "reset", "on", &password];
        words.extend(rules.iter().map(String::as_str));
        self.run::<()>(&words).await;
    }

    pub(crate) fn url(&self, user: &str) -> String {
        match self.server.address() {
            Address::Unix(path) => {
                format!("redis+unix://{}?user={user}&pass={PASSWORD}", path.display())
            }
            Address::Tcp(port) => format!("redis://{user}:{PASSWORD}@127.0.0.1:{port}"),
        }
    }

    pub(crate) fn store(&self, user: &str, budget: Duration) -> RedisStore {
        let store = RedisStore::builder(self.url(user)).repeat_budget(budget);
        store.build().expect("store")
    }

    /// A store of a user with the rules of these roles.
    pub(crate) async fn as_roles(&self, roles: &[Role]) -> RedisStore {
        let rules: Vec<_> = roles.iter().flat_map(|role| rules(*role)).collect();
        self.user("u", &rules).await;
        self.store("u", Duration::from_secs(20))
    }

    /// What was refused so far, to anybody.
    pub(crate) async fn refusals(&self) -> Vec<redis::Value> {
        self.run(&["ACL", "LOG"]).await
    }

    pub(crate) async fn keys(&self) -> u64 {
        self.run(&["DBSIZE"]).await
    }

    /// How often the server ran a command.
    pub(crate) async fn ran(&self, command: &str) -> u64 {
        let stats: String = self.run(&["INFO", "commandstats"]).await;
        let start = format!("cmdstat_{command}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&start));
        line.map_or(0, |line| line.split(',').next().unwrap_or("").parse().expect("a number"))
    }
}

pub(crate) fn rules(role: Role) -> Vec<String> {
    role.rules(&Namespace::default())
}
