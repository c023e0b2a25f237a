//! A node of a cluster dies, and nobody takes its place.

use crate::{
    shift::{Shift, client},
    support::{Cluster, key},
    tries::Tomb,
};
use sprag::QueueName;
use std::time::{Duration, Instant};

/// A worker of two queues, of which one is at the dead node: the other goes on.
#[tokio::test]
async fn the_queues_of_the_other_nodes_go_on() {
    let setup = Cluster::setup(3, 0).args(["--cluster-require-full-coverage", "no"]);
    let mut cluster = setup.start().await;
    // Where the queues and the workers are listed: not the node that dies.
    let mut spared = Vec::new();
    for name in ["sprag:queues", "sprag:workers", "sprag:schema"] {
        spared.push(cluster.node_of_key(name).await);
    }
    let dies = (0..3).find(|node| !spared.contains(node));
    let Some(dies) = dies else { panic!("they are on all three nodes: {spared:?}") };
    let (mut lives, mut lost) = (None, None);
    for name in (0..100).map(|i| format!("q{i}")) {
        let queue = QueueName::new(&name).expect("queue");
        let node = cluster.node_of_key(&key(&queue, "meta")).await;
        let place = if node == dies { &mut lost } else { &mut lives };
        place.get_or_insert(name);
    }
    let (lives, lost) = (lives.expect("of a hundred"), lost.expect("of a hundred"));
    let url = cluster.url();
    let shift = Shift::begin(client(&url), client(&url), &[&lives, &lost]).await;
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
