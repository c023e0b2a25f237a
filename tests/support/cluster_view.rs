//! What the nodes of a [`Cluster`] think of each other.

use super::Cluster;
use redis::Value;

/// Of each range of slots the first, the last, and the master's host, port and id.
pub(super) type Slots = Vec<(u16, u16, (String, u16, String))>;

impl Cluster {
    /// The masters of the future take over from those who never were, who are then forgotten.
    pub(super) async fn take_over(&self, masters: usize) {
        for master in 0..masters {
            self.until("it knows enough to take over", async || self.is_ok(master).await).await;
            self.ask::<()>(master, &["CLUSTER", "FAILOVER", "TAKEOVER"]).await;
        }
        for node in self.running() {
            // Not before it has heard who has their slots now: it would take them for lost.
            let has_heard = async || {
                let slots = self.slots(node).await;
                let ours = |id: &str| self.nodes.iter().any(|node| node.id == id);
                slots.iter().all(|(_, _, (_, _, id))| ours(id))
            };
            self.until("it has heard of those who took over", has_heard).await;
            for master in 0..masters {
                let unborn = super::cluster::unborn(master);
                let forget = async || {
                    self.try_ask::<()>(node, &["CLUSTER", "FORGET", &unborn]).await.is_ok()
                };
                self.until("the unborn are forgotten", forget).await;
            }
        }
    }

    async fn is_ok(&self, node: usize) -> bool {
        let info: String = self.ask(node, &["CLUSTER", "INFO"]).await;
        info.contains("cluster_state:ok")
    }

    /// The slots as a node knows them.
    pub(super) async fn slots(&self, node: usize) -> Slots {
        let ranges: Vec<Vec<Value>> = self.ask(node, &["CLUSTER", "SLOTS"]).await;
        let range = |range: Vec<Value>| {
            let number = |value: &Value| redis::from_redis_value_ref(value).expect("a number");
            let (host, port, id, _): (String, u16, String, Value) =
                redis::from_redis_value_ref(&range[2]).expect("host, port, id, more");
            (number(&range[0]), number(&range[1]), (host, port, id))
        };
        ranges.into_iter().map(range).collect()
    }

    /// All nodes that run agree, and nothing is amiss among them.
    pub(super) async fn is_whole(&self) -> bool {
        let mut views = Vec::new();
        for node in self.running() {
            if !self.is_ok(node).await || !self.is_in_step(node).await {
                return false;
            }
            let known: String = self.ask(node, &["CLUSTER", "NODES"]).await;
            let mut view: Vec<_> = known.lines().filter_map(View::of).collect();
            view.sort();
            views.push(view);
        }
        let of_those_that_run = |view: &Vec<View>| {
            self.running()
                .all(|node| view.iter().any(|seen| seen.id == self.nodes[node].id && !seen.ill))
        };
        views.iter().all(|view| of_those_that_run(view) && *view == views[0])
    }

    /// A replica has all that its master had; a master sends all its replicas what is new.
    async fn is_in_step(&self, node: usize) -> bool {
        let info: String = self.ask(node, &["INFO", "replication"]).await;
        if info.contains("role:master") {
            return info.matches("state=").count() == info.matches("state=online").count();
        }
        info.contains("master_link_status:up")
    }

    /// For those who wait in vain.
    pub(super) async fn describe(&self) -> String {
        let mut text = String::new();
        for node in self.running() {
            let seen: String = self.ask(node, &["CLUSTER", "NODES"]).await;
            text.push_str(&seen);
            text.push('\n');
        }
        text
    }
}

/// A line of `CLUSTER NODES`: `<id> <address> <flags> <master> <ping> <pong> <epoch> <link> <slot>
/// …`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct View {
    id: String,
    role: String,
    master: String,
    slots: String,
    ill: bool,
}

impl View {
    fn of(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let flags: Vec<&str> = words.get(2)?.split(',').filter(|flag| *flag != "myself").collect();
        // A slot on the move is `[…]`, and known to two nodes alone.
        let slots: Vec<&str> =
            words[8..].iter().filter(|slot| !slot.starts_with('[')).copied().collect();
        Some(Self {
            id: words[0].to_owned(),
            role: flags.first()?.to_string(),
            master: words[3].to_owned(),
            slots: slots.join(" "),
            ill: flags.len() > 1,
        })
    }
}
