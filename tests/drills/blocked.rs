//! A worker waits, blocked, on a queue whose slot moves.

use crate::{
    shift::Shift,
    support::{Cluster, key},
    tries::Doors,
};
use redis::AsyncCommands;
use std::time::{Duration, Instant};

const HELD: Duration = Duration::from_secs(1);

/// The worker is blocked on the queue's wake token when the queue moves: the old node sends it away. It
/// hears of the next job by its token, at the new node.
#[tokio::test]
async fn a_worker_that_waits_on_a_queue_that_moves_is_woken_at_the_new_node() {
    let cluster = Cluster::start(3, 0).await;
    let mut shift = Shift::start(&cluster.url()).await;
    shift.stop_producing().await;
    let meta = key(&shift.queue, "meta");
    let (slot, from) = (cluster.slot_of(&meta).await, cluster.node_of_key(&meta).await);
    let to = (from + 1) % 3;
    blocked(&cluster, from).await;
    let migration = cluster.open_slot(slot, from, to).await;
    migration.move_all().await;
    // It blocks anew, and is sent on to the new node, which does not have the slot yet.
    let mut kill = redis::cmd("CLIENT");
    kill.arg(&["KILL", "TYPE", "normal"]);
    kill.query_async::<u64>(&mut cluster.connection(from).await).await.expect("CLIENT KILL");
    let before = Doors::of(cluster.nodes.iter().map(|node| &node.server)).await;
    tokio::time::sleep(3 * HELD).await;
    let tries = before.passed().await;
    migration.settle().await;
    blocked(&cluster, to).await;
    let mut node = cluster.connection(to).await;
    let wakes: u64 = node.del(key(&shift.queue, "wake")).await.expect("DEL");
    let enqueued = Instant::now();
    shift.enqueue("late").await;
    shift.until_ran("late").await;
    let woken = enqueued.elapsed();
    eprintln!(
        "blocked while its slot moves: woken {woken:?}, connections {tries}, {wakes} tokens left"
    );
    assert!(woken < Duration::from_millis(500), "{woken:?}");
    assert!(tries <= 25, "{tries} connections");
    assert_eq!(shift.ends_well(&cluster.nodes[to].server).await, 0);
}

async fn blocked(cluster: &Cluster, node: usize) {
    let mut connection = cluster.connection(node).await;
    let started = Instant::now();
    loop {
        let info: redis::InfoDict =
            redis::cmd("INFO").arg("clients").query_async(&mut connection).await.expect("INFO");
        if info.get("blocked_clients") == Some(1) {
            return;
        }
        assert!(started.elapsed() < crate::support::PATIENCE, "nobody blocks");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
