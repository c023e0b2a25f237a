//! Nobody is there.

use crate::{
    shift::{Shift, client, told},
    support::Server,
    tries::Tomb,
};
use sprag::StoreError;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_server_that_is_gone_for_a_while_is_not_stormed_and_work_flows_when_it_is_back() {
    let aof = ["--appendonly", "yes"];
    let mut server = Server::tcp_with_args(&aof).await;
    let shift = Shift::start(&server.url()).await;
    server.kill();
    let tomb = Tomb::at(server.port()).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (knocks, lines) = (tomb.leave().await, shift.lines.take());
    server.restart().await;
    let flows = shift.flows_after(Instant::now()).await;
    told("gone for 10 s", flows, knocks, lines.len());
    // Two stores, that of the producers and that of the worker.
    assert!((5..=40).contains(&knocks), "{knocks} tries: {lines:#?}");
    assert!(lines.len() <= 14, "{lines:#?}");
    assert!(flows.0 < Duration::from_secs(4) && flows.1 < Duration::from_secs(5), "{flows:?}");
    shift.ends_well(&server).await;
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_unavailable_and_asked_for_seldom() {
    let unknown = client("redis://no-such-host.invalid:6379");
    let asked = Instant::now();
    let answer = unknown.ready(Duration::from_millis(1_500)).await;
    let Err(StoreError::Unavailable(text)) = answer else { panic!("{answer:?}") };
    assert!(text.contains("no-such-host.invalid:6379"), "{text}");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}
