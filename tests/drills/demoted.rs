//! `REPLICAOF` under a client that knows no other server.

use crate::{
    shift::{Shift, told},
    support::Server,
    tries::Doors,
};
use std::time::{Duration, Instant};

const AWAY: Duration = Duration::from_secs(4);

async fn follow(server: &Server, host: &str, port: &str) {
    let mut connection = server.connection().await;
    let done = redis::cmd("REPLICAOF").arg(host).arg(port).query_async::<()>(&mut connection).await;
    done.expect("REPLICAOF");
}

/// Blocked workers are told UNBLOCKED, everybody else READONLY; nobody storms meanwhile.
#[tokio::test]
async fn a_master_that_is_a_replica_for_a_while_costs_no_job_and_is_not_stormed() {
    let server = Server::start_tcp().await;
    let shift = Shift::start(&server.url()).await;
    let doors = Doors::of([&server]).await;
    // Nobody is there: the data stays.
    follow(&server, "127.0.0.1", "1").await;
    tokio::time::sleep(AWAY).await;
    let (tries, lines) = (doors.passed().await, shift.lines.take());
    follow(&server, "NO", "ONE").await;
    let flows = shift.flows_after(Instant::now()).await;
    told("a replica for 4 s", flows, tries, lines.len());
    assert!(flows.0 < Duration::from_secs(4) && flows.1 < Duration::from_secs(5), "{flows:?}");
    // Two clients, the producers' and the worker's, each with the connections of its parts.
    assert!(tries <= 30, "{tries} tries: {lines:#?}");
    assert!(lines.len() <= 12, "{lines:#?}");
    shift.ends_well(&server).await;
}
