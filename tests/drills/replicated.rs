//! A master dies, and its replica takes over what was enqueued durably: all of it.

use crate::{
    shift::{Shift, client},
    support::{Cluster, Sentinels, key},
    tries::Tomb,
};
use sprag::{Client, store::Durability};
use std::time::{Duration, Instant};

/// Enqueues so are answered when the replica has the job: without, Redis loses what it had no time to
/// pass on, and an acknowledged job with it.
fn durable(client: &Client) -> Client {
    let replicated = Durability::default().replicas(1, Duration::from_millis(500));
    client.durable(replicated).expect("within bounds")
}

/// The replica is alone now, and so no enqueue is durable any more: what is asked of the others.
fn is_alone(error: &sprag::StoreError) -> bool {
    error.to_string().contains("0 of 1 replicas have it")
}

#[tokio::test]
async fn a_master_killed_under_sentinels_costs_no_job_that_its_replica_has() {
    let mut all = Sentinels::start().await;
    let producing = durable(&client(&all.url()));
    let shift = Shift::with(producing, client(&all.url()), "default").await;
    let killed = Instant::now();
    let old = all.kill_master().await;
    let tomb = Tomb::at(all.servers[old].port()).await;
    let new = replaced(&all, old).await;
    let elected = killed.elapsed();
    let (_, ran) = shift.gaps_until_flow(killed).await;
    let (knocks, lines) = (tomb.knocks(), shift.lines.take());
    eprintln!(
        "sentinel kill: new master {elected:?}, first run {ran:?}, tries {knocks}, lines {}",
        lines.len()
    );
    assert!(ran < elected + Duration::from_secs(5), "{ran:?} after {elected:?}");
    // Each try asks three sentinels, and each answer is looked into.
    assert!(knocks <= 60, "{knocks} tries: {lines:#?}");
    assert!(lines.len() <= 12, "{lines:#?}");
    let refusals = shift.refusals();
    assert!(refusals.iter().all(is_alone), "{refusals:?}");
    shift.ended_well(&all.servers[new]).await;
}

/// Without the rig's own wait, which would hold up all that this thread has to do.
async fn replaced(all: &Sentinels, old: usize) -> usize {
    loop {
        match all.master().await {
            Some(new) if new != old => return new,
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

#[tokio::test]
async fn a_master_of_a_cluster_that_is_killed_costs_no_job_that_its_replica_has() {
    let mut cluster = Cluster::start(3, 1).await;
    let producing = durable(&client(&cluster.url()));
    let shift = Shift::with(producing, client(&cluster.url()), "default").await;
    let old = cluster.node_of_key(&key(&shift.queue, "meta")).await;
    let killed = Instant::now();
    cluster.kill(old);
    let tomb = Tomb::at(cluster.nodes[old].server.port()).await;
    let new = old + 3;
    while cluster.role(new).await != "master" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let elected = killed.elapsed();
    let (_, ran) = shift.gaps_until_flow(killed).await;
    let (knocks, lines) = (tomb.knocks(), shift.lines.take());
    eprintln!(
        "cluster kill: new master {elected:?}, first run {ran:?}, tries {knocks}, lines {}",
        lines.len()
    );
    assert!(ran < elected + Duration::from_secs(5), "{ran:?} after {elected:?}");
    assert!(knocks <= 40, "{knocks} tries: {lines:#?}");
    assert!(lines.len() <= 12, "{lines:#?}");
    let refusals = shift.refusals();
    assert!(refusals.iter().all(is_alone), "{refusals:?}");
    shift.ended_well(&cluster.nodes[new].server).await;
}
