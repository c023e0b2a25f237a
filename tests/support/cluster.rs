//! A Redis Cluster of a test's own.
//!
//! A master that starts without having been one waits 2 s before it serves anything; a replica that
//! is promoted does not. So every master is born as the replica of one that has its slots but never
//! existed, and takes over at once: three masters stand after about 0.15 s instead of 2.3 s. With
//! replicas it takes a second: a replica looks for its master once a second.

use super::make::Make;
use super::process::{free_port, taken};
use super::{PATIENCE, Server};
use redis::aio::MultiplexedConnection;
use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

const SLOTS: usize = 16_384;

/// How a cluster is to be.
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `start`"]
pub struct ClusterSetup {
    masters: usize,
    replicas: usize,
    node_timeout: Duration,
    make: Make,
    args: Vec<String>,
}

impl ClusterSetup {
    /// After how long without an answer a node counts as failed: a second by default.
    pub fn node_timeout(mut self, node_timeout: Duration) -> Self {
        self.node_timeout = node_timeout;
        self
    }

    pub fn make(mut self, make: Make) -> Self {
        self.make = make;
        self
    }

    /// More arguments for every server.
    pub fn args<A: ToString>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.to_string()));
        self
    }

    pub async fn start(self) -> Cluster {
        // As for a single server: somebody else may take a port before the server does.
        loop {
            match self.try_start().await {
                Ok(cluster) => return cluster,
                Err(log) if taken(&log) => {}
                Err(log) => panic!("{log}"),
            }
        }
    }

    async fn try_start(&self) -> Result<Cluster, String> {
        let births: Vec<Birth> =
            (0..self.masters * (1 + self.replicas)).map(|_| Birth::new()).collect();
        let spawn = |(number, birth): (usize, &Birth)| Node {
            id: birth.id.clone(),
            server: Server::setup()
                .make(self.make)
                .port(birth.port)
                .file("nodes.conf", self.nodes_conf(&births, number))
                .args(["--cluster-enabled", "yes", "--cluster-port", &birth.bus.to_string()])
                .args(["--cluster-node-timeout", &self.node_timeout.as_millis().to_string()])
                // A replica takes over as soon as its master is seen to be down, and by diskless
                // means.
                .args(["--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0"])
                .args(&self.args)
                .spawn(),
        };
        let mut nodes: Vec<Node> = births.iter().enumerate().map(spawn).collect();
        for node in &mut nodes {
            node.server.ready().await?;
        }
        let cluster = Cluster { nodes };
        cluster.take_over(self.masters).await;
        cluster.stands().await;
        Ok(cluster)
    }

    /// What the node of this number remembers of a life that it never had. The first nodes are the
    /// masters to be, each the replica of the unborn one with its slots; the others are their
    /// replicas.
    fn nodes_conf(&self, births: &[Birth], of: usize) -> String {
        let mut text = String::new();
        let mut line = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string");
        for (number, birth) in births.iter().enumerate() {
            let myself = if number == of { "myself," } else { "" };
            let master = match number.checked_sub(self.masters) {
                None => unborn(number),
                Some(replica) => births[replica % self.masters].id.clone(),
            };
            let Birth { id, port, bus } = birth;
            line(format_args!(
                "{id} 127.0.0.1:{port}@{bus} {myself}slave {master} 0 0 0 connected"
            ));
        }
        for master in 0..self.masters {
            let slots = share(master, self.masters);
            line(format_args!(
                "{} 127.0.0.1:1@2 master - 0 0 0 connected {}-{}",
                unborn(master),
                slots.start,
                slots.end - 1
            ));
        }
        // Epochs of their own, so that nobody has to give way.
        line(format_args!("vars currentEpoch {} lastVoteEpoch 0", of + 1));
        text
    }
}

/// Who a node is.
struct Birth {
    id: String,
    port: u16,
    bus: u16,
}

impl Birth {
    fn new() -> Self {
        let id = format!("{:08x}{:032x}", fastrand::u32(..), fastrand::u128(..));
        Self { id, port: free_port(), bus: free_port() }
    }
}

pub(super) fn unborn(master: usize) -> String {
    format!("{master:040x}")
}

fn share(master: usize, masters: usize) -> Range<usize> {
    SLOTS * master / masters..SLOTS * (master + 1) / masters
}

/// Nodes on 127.0.0.1: first the masters, then their replicas. Gone with their handle.
#[derive(Debug)]
pub struct Cluster {
    pub nodes: Vec<Node>,
}

/// A server of the cluster.
#[derive(Debug)]
pub struct Node {
    pub id: String,
    pub server: Server,
}

impl Cluster {
    /// Replica `masters + i` is of master `i % masters`.
    pub async fn start(masters: usize, replicas_per_master: usize) -> Self {
        Self::setup(masters, replicas_per_master).start().await
    }

    /// To choose more than that.
    pub fn setup(masters: usize, replicas_per_master: usize) -> ClusterSetup {
        ClusterSetup {
            masters,
            replicas: replicas_per_master,
            node_timeout: Duration::from_secs(1),
            make: Make::Local,
            args: Vec::new(),
        }
    }

    /// Names every node.
    pub fn url(&self) -> String {
        let hosts: Vec<_> =
            self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.server.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// A connection to this node alone, which follows no redirection.
    pub async fn connection(&self, node: usize) -> MultiplexedConnection {
        self.nodes[node].server.connection().await
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].server.kill();
    }

    /// Starts a node again in its place, and waits until the cluster is whole. A master that comes
    /// back as one serves after 2 s.
    pub async fn restart(&mut self, node: usize) {
        self.nodes[node].server.restart().await;
        self.stands().await;
    }

    /// The replica becomes master of its master's slots, with nothing lost. On return the nodes
    /// agree.
    pub async fn fail_over(&self, replica: usize) {
        self.ask::<()>(replica, &["CLUSTER", "FAILOVER"]).await;
        self.until("the replica is a master", async || {
            self.role(replica).await == "master" && self.is_whole().await
        })
        .await;
    }

    /// `master` or `slave`, as the node itself sees it.
    pub async fn role(&self, node: usize) -> String {
        let role: Vec<redis::Value> = self.ask(node, &["ROLE"]).await;
        redis::from_redis_value_ref(&role[0]).expect("a word")
    }

    pub async fn slot_of(&self, key: &str) -> u16 {
        let node = self.running().next().expect("a node runs");
        self.ask(node, &["CLUSTER", "KEYSLOT", key]).await
    }

    /// Who has the slot, in the eyes of the first node that runs.
    pub async fn node_of_slot(&self, slot: u16) -> usize {
        let node = self.running().next().expect("a node runs");
        let slots = self.slots(node).await;
        let owner = slots.iter().find(|(from, to, _)| (*from..=*to).contains(&slot));
        let (_, _, (_, port, _)) = owner.expect("somebody has the slot");
        self.nodes.iter().position(|node| node.server.port() == *port).expect("one of ours")
    }

    pub async fn node_of_key(&self, key: &str) -> usize {
        self.node_of_slot(self.slot_of(key).await).await
    }

    /// Waits for the event that only asking tells.
    pub async fn until(&self, event: &str, has_come: impl AsyncFn() -> bool) {
        let started = Instant::now();
        while !has_come().await {
            assert!(started.elapsed() < PATIENCE, "in vain: {event}\n{}", self.describe().await);
            // Not tokio's sleep: a test may have stopped its clock.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until all nodes that run see one whole cluster: every slot served, every replica known
    /// and in step with its master, nobody unborn.
    pub async fn stands(&self) {
        self.until("the cluster stands", async || self.is_whole().await).await;
    }

    /// A command to one node, which follows no redirection.
    pub async fn ask<T: redis::FromRedisValue>(&self, node: usize, command: &[&str]) -> T {
        let answer = self.try_ask(node, command).await;
        answer.unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    pub async fn try_ask<T: redis::FromRedisValue>(
        &self,
        node: usize,
        command: &[&str],
    ) -> redis::RedisResult<T> {
        let mut cmd = redis::cmd(command[0]);
        cmd.arg(&command[1..]).query_async(&mut self.connection(node).await).await
    }

    /// The nodes that run.
    pub fn running(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].server.is_running())
    }
}
