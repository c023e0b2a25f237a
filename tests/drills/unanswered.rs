//! Nobody answers who tries to connect, or there is no such name, for ten seconds.

use crate::{
    shift::{Shift, client},
    support::{Proxy, Server},
};
use std::time::{Duration, Instant};

const AWAY: Duration = Duration::from_secs(10);

/// CASES 22: at most twenty tries in ten seconds, by each of the two clients.
fn assert_no_storm(tries: u64, lines: &[String]) {
    assert!(tries <= 40, "{tries} tries: {lines:#?}");
    assert!(lines.len() <= 14, "{lines:#?}");
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers_is_not_stormed_and_costs_no_job() {
    let server = Server::start().await;
    let proxy = Proxy::in_front_of(&server).await;
    let shift = Shift::start(&proxy.url()).await;
    // Whatever is said on a connection, its first word is never answered.
    proxy.on("client setinfo").times(u64::MAX).hold_request();
    proxy.cut_all();
    let before = proxy.accepted();
    tokio::time::sleep(AWAY).await;
    let (tries, lines) = (proxy.accepted() - before, shift.lines.take());
    proxy.disarm();
    proxy.cut_all();
    let back = Instant::now();
    let (acked, ran) = shift.flows_after(back).await;
    eprintln!(
        "black hole: tries {tries} in {AWAY:?}, lines {}; then first ack {acked:?}, first run {ran:?}",
        lines.len()
    );
    assert_no_storm(tries, &lines);
    assert!(acked < Duration::from_secs(4) && ran < Duration::from_secs(5), "{acked:?} {ran:?}");
    assert_eq!(shift.ends_well(&server).await, 0);
}

#[tokio::test]
async fn a_worker_of_a_name_that_nobody_knows_says_so_now_and_then() {
    let url = "redis://no-such-host.invalid";
    let shift = Shift::begin(client(url), client(url), &["default"]).await;
    tokio::time::sleep(AWAY / 2).await;
    let lines = shift.lines.take();
    eprintln!("DNS: lines {}", lines.len());
    assert!((1..=8).contains(&lines.len()), "{lines:#?}");
}
