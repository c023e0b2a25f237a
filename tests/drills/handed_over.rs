//! A master hands its part over in order.

use crate::{
    shift::{Shift, told},
    support::{Cluster, Sentinels},
};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_cluster_s_failover_in_order_costs_no_job() {
    let cluster = Cluster::start(3, 1).await;
    let shift = Shift::start(&cluster.url()).await;
    let old = cluster.node_of_key("sprag:{default}:jobs").await;
    let at = Instant::now();
    cluster.fail_over(3 + old).await;
    let flows = shift.flows_after(at).await;
    told("CLUSTER FAILOVER", flows, 0, shift.lines.take().len());
    assert!(flows.0 < Duration::from_secs(3) && flows.1 < Duration::from_secs(5), "{flows:?}");
    shift.ends_well(&cluster.nodes[3 + old].server).await;
}

/// What the old master took until the sentinels told of the new one is lost with it: who must not
/// lose it asks for replicas. Here the jobs of a moment are: those after it are all run.
#[tokio::test]
async fn a_sentinels_failover_on_demand_goes_on_at_the_new_master() {
    let sentinels = Sentinels::start().await;
    let mut shift = Shift::start(&sentinels.url()).await;
    shift.may_lose = usize::MAX;
    let at = Instant::now();
    let new = sentinels.fail_over().await;
    let flows = shift.flows_after(at).await;
    told("SENTINEL FAILOVER", flows, 0, shift.lines.take().len());
    shift.goes_on(&sentinels.servers[new]).await;
    shift.ends_well(&sentinels.servers[new]).await;
}
