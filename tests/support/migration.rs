//! A slot on the move from one node of a [`Cluster`] to another, step by step.

use super::Cluster;

/// A slot that is open on both sides. Dropped, it stays so.
#[derive(Debug)]
#[must_use = "a slot that is not settled stays half-way"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    pub slot: u16,
    pub from: usize,
    pub to: usize,
}

impl Cluster {
    /// Moves a slot and its keys as `redis-cli --cluster reshard` does.
    pub async fn migrate_slot(&self, slot: u16, from: usize, to: usize) {
        let migration = self.open_slot(slot, from, to).await;
        migration.move_all().await;
        migration.settle().await;
    }

    /// The first step: both sides know that the slot is on the move. The keys that are there are
    /// served by the old node; those that are not get `ASK`, calls with some of both `TRYAGAIN`.
    pub async fn open_slot(&self, slot: u16, from: usize, to: usize) -> Migration<'_> {
        let number = slot.to_string();
        let (old, new) = (&self.nodes[from].id, &self.nodes[to].id);
        self.ask::<()>(to, &["CLUSTER", "SETSLOT", &number, "IMPORTING", old]).await;
        self.ask::<()>(from, &["CLUSTER", "SETSLOT", &number, "MIGRATING", new]).await;
        Migration { cluster: self, slot, from, to }
    }
}

impl Migration<'_> {
    /// The keys that are still with the old node, at most so many.
    pub async fn left(&self, most: usize) -> Vec<String> {
        let (slot, most) = (self.slot.to_string(), most.to_string());
        self.cluster.ask(self.from, &["CLUSTER", "GETKEYSINSLOT", &slot, &most]).await
    }

    /// These keys are now with the new node.
    pub async fn move_keys(&self, keys: &[String]) {
        if keys.is_empty() {
            return;
        }
        let port = self.cluster.nodes[self.to].server.port().to_string();
        let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "20000", "KEYS"];
        command.extend(keys.iter().map(String::as_str));
        let said: String = self.cluster.ask(self.from, &command).await;
        assert!(["OK", "NOKEY"].contains(&said.as_str()), "{said}");
    }

    /// All keys are now with the new node, also those that were written meanwhile.
    pub async fn move_all(&self) {
        loop {
            let keys = self.left(100).await;
            if keys.is_empty() {
                return;
            }
            self.move_keys(&keys).await;
        }
    }

    /// The last step: the slot belongs to the new node, and every master knows. What the old node
    /// still holds of it would be lost: [`move_all`](Self::move_all) first.
    pub async fn settle(self) {
        let (slot, new) = (self.slot.to_string(), &self.cluster.nodes[self.to].id);
        // The new owner first: should the old one not hear of it, nobody else would know the slot.
        let others = self.cluster.running().filter(|node| *node != self.to);
        for node in std::iter::once(self.to).chain(others) {
            if self.cluster.role(node).await == "master" {
                self.cluster.ask::<()>(node, &["CLUSTER", "SETSLOT", &slot, "NODE", new]).await;
            }
        }
        self.cluster.stands().await;
    }

    /// The slot stays where it was; what has moved moves back. Nobody may call meanwhile: the old
    /// node serves the slot again before its keys are back.
    pub async fn give_up(self) {
        let Self { cluster, slot, from, to } = self;
        let number = slot.to_string();
        cluster.ask::<()>(from, &["CLUSTER", "SETSLOT", &number, "STABLE"]).await;
        Migration { cluster, slot, from: to, to: from }.move_all().await;
        cluster.ask::<()>(to, &["CLUSTER", "SETSLOT", &number, "STABLE"]).await;
    }
}
