//! A master hands over to its replica, both alive.

use crate::{
    shift::Shift,
    support::{Cluster, Sentinels, key},
    tries::Doors,
};
use std::time::{Duration, Instant};

/// The sentinels promote the replica while the old master still serves: Redis loses what was written to
/// that meanwhile. Who was answered may have been lied to; but all that is left is run, and no job fails.
#[tokio::test]
async fn a_failover_that_the_sentinels_force_fails_no_job() {
    let all = Sentinels::start().await;
    let shift = Shift::start(&all.url()).await;
    let doors = Doors::of(&all.servers).await;
    let begun = Instant::now();
    let new = all.fail_over().await;
    let elected = begun.elapsed();
    let (acked, ran) = shift.gaps_until_flow(begun).await;
    let (tries, lines) = (doors.passed().await, shift.lines.take());
    eprintln!(
        "forced failover: new master {elected:?}, longest gap: acks {acked:?}, runs {ran:?}, \
         connections {tries}, lines {}",
        lines.len()
    );
    assert!(ran < elected + Duration::from_secs(5), "{ran:?} after {elected:?}");
    assert!(lines.len() <= 12, "{lines:#?}");
    shift.ends_but_for_lost(&all.servers[new]).await;
}

#[tokio::test]
async fn a_cluster_s_master_that_hands_over_costs_no_job() {
    let cluster = Cluster::start(3, 1).await;
    let shift = Shift::start(&cluster.url()).await;
    let old = cluster.node_of_key(&key(&shift.queue, "meta")).await;
    let doors = Doors::of(cluster.nodes.iter().map(|node| &node.server)).await;
    let begun = Instant::now();
    cluster.ask::<()>(old + 3, &["CLUSTER", "FAILOVER"]).await;
    while cluster.role(old + 3).await != "master" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (acked, ran) = shift.gaps_until_flow(Instant::now()).await;
    let (tries, lines) = (doors.passed().await, shift.lines.take());
    eprintln!(
        "cluster failover: {:?}, longest gap: acks {acked:?}, runs {ran:?}, connections {tries}, lines {}",
        begun.elapsed(),
        lines.len()
    );
    assert!(acked < Duration::from_secs(2) && ran < Duration::from_secs(5), "{acked:?} {ran:?}");
    assert!(lines.len() <= 6, "{lines:#?}");
    assert_eq!(shift.ends_well(&cluster.nodes[old + 3].server).await, 0);
}
