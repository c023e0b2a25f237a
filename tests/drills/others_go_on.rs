//! A node of a cluster dies, nobody takes its place, and those who serve several queues go on with the others.

use crate::{
    shift::{Shift, client},
    support::{Cluster, key},
    tries::Tomb,
};
use sprag::{QueueName, RedisStore, Store, StoreError};
use std::time::{Duration, Instant};

/// A cluster that goes on without one of its nodes.
struct Bereft {
    cluster: Cluster,
    /// The node that is to die.
    dies: usize,
    /// A queue at another node, and one that dies with it.
    queues: [QueueName; 2],
}

impl Bereft {
    async fn start() -> Self {
        let setup = Cluster::setup(3, 0).args(["--cluster-require-full-coverage", "no"]);
        let cluster = setup.start().await;
        // Where the queues and the workers are listed: not the node that dies.
        let mut spared = Vec::new();
        for name in ["sprag:queues", "sprag:workers", "sprag:schema"] {
            spared.push(cluster.node_of_key(name).await);
        }
        let dies = (0..3).find(|node| !spared.contains(node));
        let Some(dies) = dies else { panic!("they are on all three nodes: {spared:?}") };
        let (mut lives, mut lost) = (None, None);
        for name in (0..100).map(|i| format!("q{i}")) {
            let queue = QueueName::new(name).expect("queue");
            let node = cluster.node_of_key(&key(&queue, "meta")).await;
            let place = if node == dies { &mut lost } else { &mut lives };
            place.get_or_insert(queue);
        }
        let queues = [lives.expect("of a hundred"), lost.expect("of a hundred")];
        Self { cluster, dies, queues }
    }
}

/// It waits for both; that of the dead node cannot be waited for.
#[tokio::test]
async fn a_wait_for_a_queue_that_is_lost_does_not_end_that_for_another() {
    let Bereft { mut cluster, dies, queues } = Bereft::start().await;
    let store = RedisStore::builder(cluster.url()).build().expect("store");
    assert_eq!(store.wait(&queues, Duration::from_millis(50)).await.expect("both live"), None);
    cluster.kill(dies);
    let waiting = tokio::spawn({
        let (store, queues) = (store.clone(), queues.clone());
        async move { store.wait(&queues, Duration::from_secs(10)).await }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!waiting.is_finished(), "{:?}", waiting.await);
    let enqueued = Instant::now();
    store.wake(&queues[0]).await.expect("its node lives");
    let woken = waiting.await.expect("no panic").expect("its node lives");
    eprintln!("woken at a living node: {:?}", enqueued.elapsed());
    assert_eq!(woken.as_ref(), Some(&queues[0]));
    assert!(enqueued.elapsed() < Duration::from_millis(500), "{:?}", enqueued.elapsed());
    let alone = store.wait(&queues[1..], Duration::from_secs(10)).await;
    assert!(matches!(alone, Err(StoreError::Unavailable(_))), "{alone:?}");
}

/// A worker of two queues, of which one is at the dead node.
#[tokio::test]
#[ignore = "the worker's rounds and sweeps wait for the slowest of their queues: up to the repeat budget"]
async fn a_worker_of_a_queue_that_is_lost_goes_on_with_the_others() {
    let Bereft { mut cluster, dies, queues } = Bereft::start().await;
    let url = cluster.url();
    let served: Vec<_> = queues.iter().map(QueueName::as_str).collect();
    let shift = Shift::begin(client(&url), client(&url), &served).await;
    shift.until_flows().await;
    cluster.kill(dies);
    let tomb = Tomb::at(cluster.nodes[dies].server.port()).await;
    let killed = Instant::now();
    tokio::time::sleep(Duration::from_secs(8)).await;
    let (acked, ran) = shift.gaps(killed);
    let (tries, lines) = (tomb.knocks(), shift.lines.take());
    eprintln!(
        "a node lost for ever: longest gap of the others: acks {acked:?}, runs {ran:?}, tries {tries} in 8 s, \
         lines {}",
        lines.len()
    );
    assert!(acked < Duration::from_secs(3), "{acked:?}");
    assert!(tries <= 40 && lines.len() <= 12, "{tries}: {lines:#?}");
    assert!(ran < Duration::from_secs(3), "{ran:?}");
    let node = cluster.node_of_key(&key(&shift.queue, "meta")).await;
    assert_eq!(shift.ends_well(&cluster.nodes[node].server).await, 0);
}
