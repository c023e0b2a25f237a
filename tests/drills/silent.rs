//! A server that takes what is sent and says nothing.

use crate::{
    shift::{Shift, told},
    support::Server,
    tries::Doors,
};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_server_that_stands_still_for_a_while_costs_no_job() {
    let server = Server::start_tcp().await;
    let shift = Shift::start(&server.url()).await;
    let doors = Doors::of([&server]).await;
    server.pause();
    tokio::time::sleep(Duration::from_secs(8)).await;
    server.resume();
    let flows = shift.flows_after(Instant::now()).await;
    let (tries, lines) = (doors.passed().await, shift.lines.take());
    told("SIGSTOP for 8 s", flows, tries, lines.len());
    assert!(flows.0 < Duration::from_secs(5) && flows.1 < Duration::from_secs(5), "{flows:?}");
    assert!(tries <= 30 && lines.len() <= 14, "{tries} tries: {lines:#?}");
    shift.ends_well(&server).await;
}
