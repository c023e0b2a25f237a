//! What operators do, and what they see.

use crate::{
    bench::{Bench, default_queue, id, ms},
    support::PATIENCE,
};
use sprag::{
    WorkerId,
    store::{Change, Operation, Pace, Wish, WorkerInfo},
};
use std::time::Instant;

impl Bench {
    pub(crate) async fn operate(&self, operation: Operation, name: &str) {
        let outcomes = self.client.store().operate(&default_queue(), operation, &[id(name)]).await;
        assert_eq!(outcomes.expect("operate"), [Ok(Change::Changed)]);
    }

    /// Ends a job's lease by hand and reclaims it. The holder may extend in between: then again.
    pub(crate) async fn take_away(&self, name: &str) {
        loop {
            self.run::<()>(&["ZADD", "sprag:{default}:active", "XX", "1", name]).await;
            let swept = self.client.store().sweep(&default_queue(), Pace::Now).await;
            if swept.expect("sweep").reclaimed == 1 || self.show(name).await.crash == 1 {
                return;
            }
        }
    }

    /// Asks every worker on the list.
    pub(crate) async fn ask_all(&self, wish: Wish) {
        for worker in self.workers().await {
            let worker = WorkerId::new(worker.id).expect("id");
            self.client.store().ask(&worker, wish).await.expect("asked");
        }
    }

    pub(crate) async fn workers(&self) -> Vec<WorkerInfo> {
        self.client.store().workers().await.expect("workers")
    }

    /// Waits until so many workers are on the list.
    pub(crate) async fn until_listed(&self, count: usize) {
        let started = Instant::now();
        while self.workers().await.len() != count {
            assert!(started.elapsed() < PATIENCE, "never {count} on the list");
            tokio::time::sleep(ms(5)).await;
        }
    }

    /// Waits until the only worker on the list is seen so.
    pub(crate) async fn until_seen(&self, is_so: impl Fn(&WorkerInfo) -> bool) -> WorkerInfo {
        let started = Instant::now();
        loop {
            let mut workers = self.workers().await;
            if let Some(seen) = workers.pop().filter(&is_so) {
                return seen;
            }
            assert!(started.elapsed() < PATIENCE, "never seen so: {workers:?}");
            tokio::time::sleep(ms(5)).await;
        }
    }

    /// Waits until a worker listens to operators.
    pub(crate) async fn until_listening(&self) {
        let started = Instant::now();
        loop {
            let (_, count): (String, u64) = self.run(&["PUBSUB", "NUMSUB", "sprag:control"]).await;
            if count > 0 {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "nobody listens");
            tokio::time::sleep(ms(2)).await;
        }
    }
}
