//! Every connection is cut at once, by an operator or a proxy.

use crate::{
    shift::Shift,
    support::{Cluster, Server},
    tries::Doors,
};
use std::time::{Duration, Instant};

/// Of a hundred cuts, each a second at most.
const SOON: Duration = Duration::from_secs(2);

async fn cut_all(server: &Server) {
    let mut own = server.connection().await;
    for kind in ["normal", "pubsub"] {
        let mut kill = redis::cmd("CLIENT");
        kill.arg("KILL").arg("TYPE").arg(kind);
        kill.query_async::<u64>(&mut own).await.expect("CLIENT KILL");
    }
}

/// CASES 21, by a worker with much to do.
#[tokio::test]
async fn connections_cut_at_once_cost_no_job() {
    let server = Server::start_tcp().await;
    let shift = Shift::start(&server.url()).await;
    for round in 0..3 {
        cut_all(&server).await;
        let cut = Instant::now();
        let doors = Doors::of([&server]).await;
        let (acked, ran) = shift.flows_after(cut).await;
        let (tries, lines) = (doors.passed().await, shift.lines.take());
        eprintln!(
            "CLIENT KILL {round}: first ack {acked:?}, first run {ran:?}, connections {tries}"
        );
        assert!(acked < SOON && ran < SOON, "{acked:?} {ran:?}: {lines:#?}");
        assert!(tries <= 12 && lines.len() <= 4, "{tries}: {lines:#?}");
    }
    assert_eq!(shift.ends_well(&server).await, 0);
}

#[tokio::test]
async fn connections_to_all_nodes_of_a_cluster_cut_at_once_cost_no_job() {
    let cluster = Cluster::start(3, 0).await;
    let shift = Shift::start(&cluster.url()).await;
    for round in 0..3 {
        for node in &cluster.nodes {
            cut_all(&node.server).await;
        }
        let cut = Instant::now();
        let doors = Doors::of(cluster.nodes.iter().map(|node| &node.server)).await;
        let (acked, ran) = shift.flows_after(cut).await;
        let (tries, lines) = (doors.passed().await, shift.lines.take());
        eprintln!(
            "CLIENT KILL {round}, cluster: first ack {acked:?}, first run {ran:?}, connections {tries}"
        );
        assert!(acked < SOON && ran < SOON, "{acked:?} {ran:?}: {lines:#?}");
        assert!(tries <= 20 && lines.len() <= 8, "{tries}: {lines:#?}");
    }
    let node = cluster.node_of_key(&crate::support::key(&shift.queue, "meta")).await;
    assert_eq!(shift.ends_well(&cluster.nodes[node].server).await, 0);
}
