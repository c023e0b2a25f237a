//! A server that is back, and still reads its data.

use crate::{shift::Shift, support::Server, tries::Doors};
use std::time::{Duration, Instant};

/// Killed with a large file to read: for seconds it answers LOADING.
#[tokio::test]
async fn a_server_that_loads_its_data_is_waited_for() {
    let mut server = Server::setup()
        .tcp()
        .args(["--appendonly", "yes", "--appendfsync", "no", "--enable-debug-command", "yes"])
        // Slow on purpose: 50 µs for each of the keys.
        .args(["--key-load-delay", "50", "--loading-process-events-interval-bytes", "1024"])
        .start()
        .await;
    let mut own = server.connection().await;
    let mut fill = redis::cmd("DEBUG");
    fill.arg(&["POPULATE", "40000", "other", "100"]);
    fill.query_async::<()>(&mut own).await.expect("DEBUG POPULATE");
    redis::cmd("BGREWRITEAOF").query_async::<()>(&mut own).await.expect("BGREWRITEAOF");
    loop {
        let info: redis::InfoDict =
            redis::cmd("INFO").arg("persistence").query_async(&mut own).await.expect("INFO");
        let is = |field: &str| info.get::<u8>(field) == Some(1);
        if !is("aof_rewrite_in_progress") && !is("aof_rewrite_scheduled") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let shift = Shift::start(&server.url()).await;
    let killed = Instant::now();
    // On return it has loaded.
    server.restart().await;
    let back = Instant::now();
    let away = back - killed;
    let doors = Doors::of([&server]).await;
    let (acked, ran) = shift.flows_after(back).await;
    let (tries, lines) = (doors.passed().await, shift.lines.take());
    eprintln!(
        "LOADING for {away:?}: first ack {acked:?}, first run {ran:?}, connections then {tries}, lines {}",
        lines.len()
    );
    assert!(away > Duration::from_secs(1), "{away:?}: not slow");
    assert!(acked < Duration::from_secs(4) && ran < Duration::from_secs(5), "{acked:?} {ran:?}");
    assert!(tries <= 20 && lines.len() <= 10, "{tries}: {lines:#?}");
    shift.ends_well(&server).await;
}
