//! Signals to a real process.

use crate::{
    bench::{Bench, HOUR, ms},
    process::Process,
    support::Proxy,
};
use sprag::State;
use std::time::{Duration, Instant};

#[tokio::test]
async fn sigtstp_makes_a_worker_quiet_and_sigterm_ends_it() {
    let bench = Bench::new().await;
    let mut process = Process::start(&bench.server.url(), ms(1_000));
    bench.enqueue(&["a", "b"]).await;
    assert_eq!(bench.started_elsewhere().await, "a");
    process.signal("TSTP");
    bench.until("the job that runs to be done", |info| info.completed_today == 1).await;
    // It would have looked again by itself by now.
    tokio::time::sleep(ms(2_000)).await;
    assert!(process.is_alive());
    let info = bench.info().await;
    assert_eq!((info.pending, info.active), (1, 0));
    let asked = Instant::now();
    assert!(process.terminate().await);
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(bench.show("b").await.state, State::Pending);
}

#[tokio::test]
async fn a_second_sigterm_ends_a_worker_at_once_though_redis_is_away() {
    let bench = Bench::new().await;
    let proxy = Proxy::in_front_of(&bench.server).await;
    let mut process = Process::start(&proxy.url(), HOUR);
    bench.enqueue(&["a", "b"]).await;
    assert_eq!(bench.started_elsewhere().await, "a");
    proxy.refuse(true).await;
    proxy.cut_all();
    process.signal("TERM");
    // It drains: its grace is 25 s.
    tokio::time::sleep(ms(500)).await;
    assert!(process.is_alive());
    let asked = Instant::now();
    assert!(process.terminate().await, "it ends in order");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    // Its lease runs out.
    assert_eq!(bench.show("a").await.state, State::Active);
}
