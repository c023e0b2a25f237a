//! Every connection is killed.

use crate::{
    shift::{Shift, told},
    support::{Cluster, Server},
};
use redis::aio::MultiplexedConnection;
use std::time::{Duration, Instant};

/// All but the one that asks for it; subscribers, too.
async fn kill_all(connection: &mut MultiplexedConnection) {
    for kind in ["normal", "pubsub"] {
        let kill = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg(kind).to_owned();
        kill.query_async::<()>(connection).await.expect("CLIENT KILL");
    }
}

#[tokio::test]
async fn a_kill_of_all_clients_costs_no_job_and_less_than_a_second() {
    let server = Server::start_tcp().await;
    let shift = Shift::start(&server.url()).await;
    let mut killer = server.connection().await;
    for _ in 0..5 {
        let at = Instant::now();
        kill_all(&mut killer).await;
        let flows = shift.flows_after(at).await;
        told("CLIENT KILL", flows, 0, shift.lines.take().len());
        assert!(flows.0 < Duration::from_secs(1) && flows.1 < Duration::from_secs(3), "{flows:?}");
    }
    shift.ends_well(&server).await;
}

#[tokio::test]
async fn a_kill_of_all_clients_of_a_cluster_costs_no_job() {
    let cluster = Cluster::start(3, 0).await;
    let shift = Shift::start(&cluster.url()).await;
    let at = Instant::now();
    for node in 0..3 {
        kill_all(&mut cluster.connection(node).await).await;
    }
    let flows = shift.flows_after(at).await;
    told("CLIENT KILL, cluster", flows, 0, shift.lines.take().len());
    assert!(flows.0 < Duration::from_secs(1) && flows.1 < Duration::from_secs(3), "{flows:?}");
    let owner = cluster.node_of_key("sprag:{default}:jobs").await;
    shift.ends_well(&cluster.nodes[owner].server).await;
}
