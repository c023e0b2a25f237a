//! A cluster.

use crate::support::Cluster;

/// A key, and the nodes that its slot moves between.
const KEY: &str = "{queue}:jobs";

async fn filled(cluster: &Cluster) -> (u16, usize, usize) {
    let (slot, from) = (cluster.slot_of(KEY).await, cluster.node_of_key(KEY).await);
    let to = (from + 1) % 3;
    cluster.ask::<()>(from, &["SET", KEY, "kept"]).await;
    (slot, from, to)
}

async fn get(cluster: &Cluster, node: usize) -> Result<Option<String>, String> {
    let got = cluster.try_ask(node, &["GET", KEY]).await;
    got.map_err(|error| error.code().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn every_slot_is_served_by_one_of_three_masters() {
    let cluster = Cluster::start(3, 0).await;
    for (slot, node) in [(0, 0), (5_460, 0), (5_461, 1), (10_921, 1), (10_922, 2), (16_383, 2)] {
        assert_eq!(cluster.node_of_slot(slot).await, node, "{slot}");
    }
    let (_, from, to) = filled(&cluster).await;
    assert_eq!(get(&cluster, from).await, Ok(Some("kept".to_owned())));
    assert_eq!(get(&cluster, to).await, Err("MOVED".to_owned()));
}

#[tokio::test]
async fn a_slot_moves_and_a_key_with_it() {
    let cluster = Cluster::start(3, 0).await;
    let (slot, from, to) = filled(&cluster).await;
    cluster.migrate_slot(slot, from, to).await;
    assert_eq!(cluster.node_of_key(KEY).await, to);
    assert_eq!(get(&cluster, from).await, Err("MOVED".to_owned()));
    assert_eq!(get(&cluster, to).await, Ok(Some("kept".to_owned())));
}

#[tokio::test]
async fn a_slot_can_be_held_half_way() {
    let cluster = Cluster::start(3, 0).await;
    let (slot, from, to) = filled(&cluster).await;
    let migration = cluster.open_slot(slot, from, to).await;
    assert_eq!(migration.left(10).await, [KEY]);
    assert_eq!(get(&cluster, from).await, Ok(Some("kept".to_owned())), "it is still there");
    migration.move_all().await;
    assert_eq!(get(&cluster, from).await, Err("ASK".to_owned()));
    assert_eq!(get(&cluster, to).await, Err("MOVED".to_owned()), "it is not yet the owner");
    migration.give_up().await;
    assert_eq!(get(&cluster, from).await, Ok(Some("kept".to_owned())), "it is back");
}

#[tokio::test]
async fn a_replica_takes_over_from_a_master_that_is_killed() {
    let mut cluster = Cluster::start(3, 1).await;
    let (_, killed, _) = filled(&cluster).await;
    let replica = killed + 3;
    assert_eq!(cluster.role(replica).await, "slave");
    // WAIT counts the writes of its own connection.
    let mut write = redis::pipe();
    write.cmd("SET").arg(KEY).arg("kept").ignore().cmd("WAIT").arg(1).arg(5_000);
    let (waited,): (u64,) =
        write.query_async(&mut cluster.connection(killed).await).await.expect("WAIT");
    assert_eq!(waited, 1, "it is replicated");
    cluster.kill(killed);
    cluster.until("the replica leads", async || cluster.role(replica).await == "master").await;
    cluster.until("the others know", async || cluster.node_of_key(KEY).await == replica).await;
    cluster
        .until("it serves", async || get(&cluster, replica).await == Ok(Some("kept".to_owned())))
        .await;
    cluster.restart(killed).await;
    assert_eq!(cluster.role(killed).await, "slave", "the old master follows");
}

#[tokio::test]
async fn a_replica_is_promoted_by_order() {
    let cluster = Cluster::start(3, 1).await;
    let (_, old, _) = filled(&cluster).await;
    cluster.fail_over(old + 3).await;
    assert_eq!(cluster.node_of_key(KEY).await, old + 3);
    assert_eq!(cluster.role(old).await, "slave");
    assert_eq!(get(&cluster, old + 3).await, Ok(Some("kept".to_owned())));
}
