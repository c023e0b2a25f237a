//! Servers that take what is sent, and answer nothing.

use crate::{shift::Shift, support::Server};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_server_stopped_for_three_seconds_costs_no_job() {
    let server = Server::start_tcp().await;
    let shift = Shift::start(&server.url()).await;
    server.pause();
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.resume();
    let back = Instant::now();
    let (acked, ran) = shift.flows_after(back).await;
    let lines = shift.lines.take();
    eprintln!("SIGSTOP 3 s: first ack {acked:?}, first run {ran:?}, lines {}", lines.len());
    assert!(acked < Duration::from_secs(1) && ran < Duration::from_secs(2), "{acked:?} {ran:?}");
    assert!(lines.len() <= 2, "{lines:#?}");
    assert_eq!(shift.ends_well(&server).await, 0);
}

/// Longer than any answer is waited for.
#[tokio::test]
async fn a_server_stopped_for_eight_seconds_costs_no_job_and_is_not_stormed() {
    let server = Server::start_tcp().await;
    let shift = Shift::start(&server.url()).await;
    let doors = crate::tries::Doors::of([&server]).await;
    server.pause();
    tokio::time::sleep(Duration::from_secs(8)).await;
    server.resume();
    let back = Instant::now();
    let (acked, ran) = shift.flows_after(back).await;
    let (tries, lines) = (doors.passed().await, shift.lines.take());
    eprintln!(
        "SIGSTOP 8 s: first ack {acked:?}, first run {ran:?}, tries {tries}, lines {}",
        lines.len()
    );
    assert!(acked < Duration::from_secs(5) && ran < Duration::from_secs(5), "{acked:?} {ran:?}");
    assert!(tries <= 40 && lines.len() <= 8, "{tries} tries: {lines:#?}");
    assert_eq!(shift.ends_well(&server).await, 0);
}
