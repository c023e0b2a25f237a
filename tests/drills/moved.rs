//! The queue's slot moves to another node while it is worked on.

use crate::{
    shift::{Shift, told},
    support::Cluster,
};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_queue_whose_slot_moves_under_load_loses_and_doubles_no_job() {
    let cluster = Cluster::start(3, 0).await;
    let shift = Shift::start(&cluster.url()).await;
    let key = "sprag:{default}:jobs";
    let (slot, from) = (cluster.slot_of(key).await, cluster.node_of_key(key).await);
    let to = (from + 1) % 3;
    let at = Instant::now();
    let migration = cluster.open_slot(slot, from, to).await;
    // Half of its keys: calls that need both halves are told TRYAGAIN, for a second.
    let keys = migration.left(100).await;
    migration.move_keys(&keys[..keys.len() / 2]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    migration.move_all().await;
    migration.settle().await;
    let settled = Instant::now();
    let flows = shift.flows_after(settled).await;
    told("a slot that moves, half-way for 1 s", flows, 0, shift.lines.take().len());
    eprintln!("longest gaps since it began: {:?}", shift.gaps(at));
    assert!(flows.0 < Duration::from_secs(2) && flows.1 < Duration::from_secs(4), "{flows:?}");
    let twice = shift.ends_well(&cluster.nodes[to].server).await;
    assert_eq!(twice, 0, "run twice");
}

/// There and back, again and again, with a worker that is blocked most of the time.
#[tokio::test]
async fn a_slot_that_moves_to_and_fro_keeps_its_workers_awake() {
    let cluster = Cluster::start(3, 0).await;
    let shift = Shift::start(&cluster.url()).await;
    let key = "sprag:{default}:jobs";
    let slot = cluster.slot_of(key).await;
    for _ in 0..4 {
        let from = cluster.node_of_key(key).await;
        cluster.migrate_slot(slot, from, (from + 1) % 3).await;
        let flows = shift.flows_after(Instant::now()).await;
        assert!(flows.1 < Duration::from_secs(4), "{flows:?}");
    }
    let owner = cluster.node_of_key(key).await;
    assert_eq!(shift.ends_well(&cluster.nodes[owner].server).await, 0, "run twice");
}
