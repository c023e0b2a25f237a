//! A master and its replica.

use crate::support::{Make, PATIENCE, Server};
use redis::{FromRedisValue, cmd};
use std::time::Instant;

pub(crate) struct Pair {
    pub(crate) master: Server,
    pub(crate) replica: Server,
}

impl Pair {
    pub(crate) async fn start() -> Self {
        Self::of(Make::Local).await
    }

    /// The replica follows, and has everything.
    pub(crate) async fn of(make: Make) -> Self {
        let setup = || Server::setup().make(make).tcp().args(["--repl-diskless-sync-delay", "0"]);
        let pair = Self { master: setup().start().await, replica: setup().start().await };
        pair.join().await;
        pair
    }

    /// The replica follows (again).
    pub(crate) async fn join(&self) {
        let port = self.master.port().to_string();
        run::<()>(&self.replica, &["REPLICAOF", "127.0.0.1", &port]).await;
        until("the replica is in step", async || {
            let info: String = run(&self.master, &["INFO", "replication"]).await;
            info.contains("state=online")
        })
        .await;
        // It acknowledges once a second; from now on its offset is known.
        let acked: u64 = run(&self.master, &["WAIT", "1", "5000"]).await;
        assert_eq!(acked, 1);
    }

    /// The replica stands on its own feet: the master has none.
    pub(crate) async fn part(&self) {
        run::<()>(&self.replica, &["REPLICAOF", "NO", "ONE"]).await;
        until("the master is alone", async || {
            let info: String = run(&self.master, &["INFO", "replication"]).await;
            info.contains("connected_slaves:0")
        })
        .await;
    }
}

/// Past the library.
pub(crate) async fn run<T: FromRedisValue>(server: &Server, words: &[&str]) -> T {
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(&mut server.connection().await).await.expect("a command")
}

pub(crate) async fn until(event: &str, has_come: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !has_come().await {
        assert!(started.elapsed() < PATIENCE, "waited {PATIENCE:?} until {event}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// The makes that are here.
pub(crate) fn makes() -> impl Iterator<Item = Make> {
    [Make::Local, Make::Redis8, Make::Valkey9].into_iter().filter_map(Make::if_here)
}
