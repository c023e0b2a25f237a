//! Nobody is where the URL points to: nothing listens, nothing answers, there is no such name.

use crate::{
    shift::{Shift, client},
    support::{Proxy, Server},
};
use sprag::{RedisStore, Store, StoreError};
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

/// The tries are counted by those that are let in and cut off; what refuses cannot count.
#[tokio::test]
async fn a_server_that_is_gone_for_ten_seconds_is_not_stormed_and_costs_no_job() {
    let server = Server::start().await;
    let proxy = Proxy::in_front_of(&server).await;
    let shift = Shift::start(&proxy.url()).await;
    proxy.on("client setinfo").times(u64::MAX).reset_before();
    proxy.cut_all();
    let before = proxy.accepted();
    tokio::time::sleep(AWAY / 2).await;
    let tries = proxy.accepted() - before;
    proxy.disarm();
    proxy.refuse(true).await;
    proxy.cut_all();
    tokio::time::sleep(AWAY / 2).await;
    let lines = shift.lines.take();
    proxy.refuse(false).await;
    let back = Instant::now();
    let (acked, ran) = shift.flows_after(back).await;
    eprintln!(
        "gone: tries {tries} in {:?}, lines {}; then first ack {acked:?}, first run {ran:?}",
        AWAY / 2,
        lines.len()
    );
    assert_no_storm(2 * tries, &lines);
    assert!(acked < Duration::from_secs(4) && ran < Duration::from_secs(5), "{acked:?} {ran:?}");
    assert_eq!(shift.ends_well(&server).await, 0);
}

/// redis-rs says of it: repeat immediately.
#[tokio::test]
async fn a_name_that_nobody_knows_is_unavailable_and_named() {
    let store = RedisStore::builder("redis://user:secret@no-such-host.invalid")
        .repeat_budget(Duration::from_secs(2))
        .build()
        .expect("store");
    let asked = Instant::now();
    let error = store.queues().await.expect_err("no such host");
    let took = asked.elapsed();
    eprintln!("DNS: {error} after {took:?}");
    let StoreError::Unavailable(why) = &error else { panic!("{error:?}") };
    assert!(why.contains("no-such-host.invalid") && !why.contains("secret"), "{why}");
    assert!((Duration::from_secs(1)..Duration::from_secs(8)).contains(&took), "{took:?}");
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
