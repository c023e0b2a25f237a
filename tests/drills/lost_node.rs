//! A node of a cluster dies, and nobody takes its part.

use crate::{
    shift::{Shift, client},
    support::Cluster,
};
use sprag::{Client, QueueName, RedisStore, StoreError};
use std::time::{Duration, Instant};

/// A queue on each node: `q-0`, `q-1` …, the first that falls there.
async fn queues(cluster: &Cluster) -> Vec<String> {
    let mut queues = vec![None; cluster.nodes.len()];
    for number in 0.. {
        let name = format!("q-{number}");
        let node = cluster.node_of_key(&format!("sprag:{{{name}}}:jobs")).await;
        queues[node].get_or_insert(name);
        if queues.iter().all(Option::is_some) {
            break;
        }
    }
    queues.into_iter().flatten().collect()
}

/// The cluster serves what it has (`cluster-require-full-coverage no`).
#[tokio::test]
async fn queues_on_the_other_nodes_go_on_when_one_is_gone_for_ever() {
    let settings = ["--cluster-require-full-coverage", "no"];
    let mut cluster = Cluster::setup(3, 0).args(settings).start().await;
    let queues = queues(&cluster).await;
    let url = cluster.url();
    let list = cluster.node_of_key("sprag:queues").await;
    let (dead, alive) = ((list + 1) % 3, list);
    let shift = Shift::with(client(&url), client(&url), &queues[alive]).await;
    let store = RedisStore::builder(&url).repeat_budget(Duration::from_secs(1)).build();
    let gone = Client::new(store.expect("a store"));
    let queue = QueueName::new(&queues[dead]).expect("a queue");
    let answer = gone.store().queue(&queue).await;
    assert!(matches!(answer, Err(StoreError::NotFound(_))), "{answer:?}");
    cluster.kill(dead);
    let flows = shift.flows_after(Instant::now()).await;
    assert!(flows.0 < Duration::from_secs(5) && flows.1 < Duration::from_secs(6), "{flows:?}");
    let asked = Instant::now();
    let answer = gone.store().queue(&queue).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    let answer = gone.ready(Duration::ZERO).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    shift.ends_well(&cluster.nodes[alive].server).await;
}
