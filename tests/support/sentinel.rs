//! A master, its replica, and three sentinels over them.
//!
//! Sentinels find each other by messages every 2 s; here their configuration names the others from
//! the start, and all that is left to wait for is the replica.

use super::process::{free_port, taken};
use super::{PATIENCE, Server, Setup};
use std::time::{Duration, Instant};

/// What the sentinels call their master.
pub const MASTER: &str = "mymaster";
const SENTINELS: usize = 3;

/// How the sentinels are to be.
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `start`"]
pub struct SentinelSetup {
    down_after: Duration,
    server_password: Option<String>,
    sentinel_password: Option<String>,
}

impl SentinelSetup {
    /// After how long without an answer the master counts as failed: 600 ms by default.
    pub fn down_after(mut self, down_after: Duration) -> Self {
        self.down_after = down_after;
        self
    }

    /// The servers want this password.
    pub fn server_password(mut self, password: &str) -> Self {
        self.server_password = Some(password.to_owned());
        self
    }

    /// The sentinels want this password.
    pub fn sentinel_password(mut self, password: &str) -> Self {
        self.sentinel_password = Some(password.to_owned());
        self
    }

    pub async fn start(self) -> Sentinels {
        let servers = [self.server().start().await, self.server().start().await];
        let master = servers[0].port().to_string();
        let follow = ["REPLICAOF", "127.0.0.1", &master];
        ask::<()>(&servers[1], &follow).await.expect("it follows");
        // As for a single server: somebody else may take a port before the sentinel does.
        let sentinels = loop {
            match self.sentinels(&servers).await {
                Ok(sentinels) => break sentinels,
                Err(log) if taken(&log) => {}
                Err(log) => panic!("{log}"),
            }
        };
        let all = Sentinels { servers: servers.into(), sentinels, setup: self };
        all.until("they stand", async || all.stand().await).await;
        all
    }

    fn server(&self) -> Setup {
        let setup = Server::setup().tcp().args(["--repl-diskless-sync-delay", "0"]);
        match &self.server_password {
            Some(password) => setup.password(password).config(format!("masterauth {password}")),
            None => setup,
        }
    }

    async fn sentinels(&self, servers: &[Server]) -> Result<Vec<Server>, String> {
        let births = [0; SENTINELS].map(|_| (free_port(), format!("{:040x}", fastrand::u128(..))));
        let mut sentinels = Vec::new();
        for (port, id) in &births {
            let mut setup = Server::setup().port(*port).args(["--sentinel"]);
            if let Some(password) = &self.sentinel_password {
                setup = setup.password(password);
            }
            for line in self.config(servers, id, &births) {
                setup = setup.config(format!("sentinel {line}"));
            }
            sentinels.push(setup.spawn());
        }
        for sentinel in &mut sentinels {
            sentinel.ready().await?;
        }
        Ok(sentinels)
    }

    fn config(&self, servers: &[Server], id: &str, all: &[(u16, String)]) -> Vec<String> {
        let (master, replica) = (servers[0].port(), servers[1].port());
        let mut lines = vec![
            format!("myid {id}"),
            format!("monitor {MASTER} 127.0.0.1 {master} 2"),
            format!("down-after-milliseconds {MASTER} {}", self.down_after.as_millis()),
            format!("failover-timeout {MASTER} 3000"),
            format!("known-replica {MASTER} 127.0.0.1 {replica}"),
        ];
        let others = all.iter().filter(|(_, other)| other != id);
        let known =
            |(port, id): &(u16, String)| format!("known-sentinel {MASTER} 127.0.0.1 {port} {id}");
        lines.extend(others.map(known));
        let auth = |password: &String| format!("auth-pass {MASTER} {password}");
        lines.extend(self.server_password.iter().map(auth));
        lines.extend(
            self.sentinel_password.iter().map(|password| format!("sentinel-pass {password}")),
        );
        lines
    }
}

/// The servers and the sentinels, on 127.0.0.1. Gone with their handle.
#[derive(Debug)]
pub struct Sentinels {
    /// At first, number 0 is the master.
    pub servers: Vec<Server>,
    pub sentinels: Vec<Server>,
    setup: SentinelSetup,
}

impl Sentinels {
    pub async fn start() -> Self {
        Self::setup().start().await
    }

    /// To choose more than that.
    pub fn setup() -> SentinelSetup {
        SentinelSetup {
            down_after: Duration::from_millis(600),
            server_password: None,
            sentinel_password: None,
        }
    }

    /// Names every sentinel, with the passwords.
    pub fn url(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
        let SentinelSetup { server_password, sentinel_password, .. } = &self.setup;
        let login = server_password.as_ref().map(|password| format!(":{password}@"));
        let asked = sentinel_password.as_ref().map(|password| format!("?sentinel_pass={password}"));
        format!(
            "redis+sentinel://{}{}/{MASTER}{}",
            login.unwrap_or_default(),
            hosts.join(","),
            asked.unwrap_or_default()
        )
    }

    /// Which server the sentinels call the master: all that run, or nobody yet.
    pub async fn master(&self) -> Option<usize> {
        let mut named = Vec::new();
        for sentinel in self.sentinels.iter().filter(|sentinel| sentinel.is_running()) {
            let command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER];
            let (_, port): (String, u16) = ask(sentinel, &command).await.ok()?;
            named.push(port);
        }
        named.dedup();
        let [port] = *named else { return None };
        self.servers.iter().position(|server| server.port() == port)
    }

    /// Kills the master, and says which server it was. The sentinels notice by themselves:
    /// [`replaced`](Self::replaced) waits for it.
    pub async fn kill_master(&mut self) -> usize {
        let master = self.master().await.expect("there is a master");
        self.servers[master].kill();
        master
    }

    /// Waits until all sentinels name another master, which knows that it is one. Says which.
    pub async fn replaced(&self, old: usize) -> usize {
        let mut new = old;
        self.until("another master", async || match self.master().await {
            Some(named) => named != old && role(&self.servers[named]).await == "master",
            None => false,
        })
        .await;
        new = self.master().await.unwrap_or(new);
        new
    }

    /// Has the replica promoted, with the old master alive. Says which server is the master now.
    pub async fn fail_over(&self) -> usize {
        let old = self.master().await.expect("there is a master");
        let order = ["SENTINEL", "FAILOVER", MASTER];
        self.until("a sentinel obeys", async || {
            ask::<()>(&self.sentinels[0], &order).await.is_ok()
        })
        .await;
        self.replaced(old).await
    }

    /// Starts a server again in its place. The sentinels make it a replica of the master, in about
    /// 10 s.
    pub async fn restart(&mut self, server: usize) {
        self.servers[server].restart().await;
    }

    /// Waits for the event that only asking tells.
    pub async fn until(&self, event: &str, has_come: impl AsyncFn() -> bool) {
        let started = Instant::now();
        while !has_come().await {
            assert!(started.elapsed() < PATIENCE, "in vain: {event}");
            // Not tokio's sleep: a test may have stopped its clock.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everybody sees everybody, and the replica is in step.
    async fn stand(&self) -> bool {
        let replicas = ["SENTINEL", "REPLICAS", MASTER];
        let follows = ask::<String>(&self.servers[1], &["INFO", "replication"]).await;
        if !follows.is_ok_and(|info| info.contains("master_link_status:up")) {
            return false;
        }
        for sentinel in &self.sentinels {
            let quorum = ask::<String>(sentinel, &["SENTINEL", "CKQUORUM", MASTER]).await;
            let usable = format!("OK {SENTINELS} usable");
            let replicas: redis::RedisResult<Vec<std::collections::HashMap<String, String>>> =
                ask(sentinel, &replicas).await;
            let seen = replicas.is_ok_and(|all| {
                // Known only after the first INFO: before that it would not be promoted.
                all.iter()
                    .any(|replica| replica["flags"] == "slave" && !replica["runid"].is_empty())
            });
            if !seen || !quorum.is_ok_and(|said| said.starts_with(&usable)) {
                return false;
            }
        }
        true
    }
}

async fn ask<T: redis::FromRedisValue>(server: &Server, command: &[&str]) -> redis::RedisResult<T> {
    let mut cmd = redis::cmd(command[0]);
    cmd.arg(&command[1..]).query_async(&mut server.connection().await).await
}

async fn role(server: &Server) -> String {
    let role: redis::RedisResult<Vec<redis::Value>> = ask(server, &["ROLE"]).await;
    role.ok().and_then(|role| redis::from_redis_value_ref(&role[0]).ok()).unwrap_or_default()
}
