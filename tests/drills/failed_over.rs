//! A master dies, and its replica takes its part.

use crate::{
    shift::{IN_FLIGHT, Shift, told},
    support::{Cluster, Sentinels},
    tries::Tomb,
};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_killed_master_behind_sentinels_costs_no_more_than_the_time_to_replace_it() {
    let mut sentinels = Sentinels::start().await;
    let mut shift = Shift::start(&sentinels.url()).await;
    shift.may_lose = IN_FLIGHT;
    let at = Instant::now();
    let old = sentinels.kill_master().await;
    let tomb = Tomb::at(sentinels.servers[old].port()).await;
    let new = sentinels.replaced(old).await;
    let replaced = Instant::now();
    let flows = shift.flows_after(at).await;
    let late = replaced.elapsed();
    told("kill -9 of a master, sentinels", flows, tomb.knocks(), shift.lines.take().len());
    assert!(late < Duration::from_secs(5), "{late:?} after it was replaced");
    // Each try asks the three sentinels, and looks at whom each names.
    assert!(tomb.knocks() <= 60, "{} knocks", tomb.knocks());
    shift.goes_on(&sentinels.servers[new]).await;
    shift.ends_well(&sentinels.servers[new]).await;
}

#[tokio::test]
async fn a_killed_master_of_a_cluster_costs_no_more_than_the_time_to_replace_it() {
    let mut cluster = Cluster::start(3, 1).await;
    let mut shift = Shift::start(&cluster.url()).await;
    shift.may_lose = IN_FLIGHT;
    let old = cluster.node_of_key("sprag:{default}:jobs").await;
    let at = Instant::now();
    cluster.kill(old);
    let tomb = Tomb::at(cluster.nodes[old].server.port()).await;
    cluster
        .until("the replica is the master", async || cluster.role(3 + old).await == "master")
        .await;
    let replaced = Instant::now();
    let flows = shift.flows_after(at).await;
    let late = replaced.elapsed();
    told("kill -9 of a master, cluster", flows, tomb.knocks(), shift.lines.take().len());
    assert!(late < Duration::from_secs(5), "{late:?} after it was replaced");
    assert!(tomb.knocks() <= 40, "{} knocks", tomb.knocks());
    shift.goes_on(&cluster.nodes[3 + old].server).await;
    shift.ends_well(&cluster.nodes[3 + old].server).await;
}
