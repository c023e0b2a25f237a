//! `SCRIPT FLUSH`, again and again.

use crate::rig::{Rig, queue};
use redis::cmd;
use sprag::{Envelope, Kind, Store};
use std::time::Instant;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_of_flushes_makes_a_call_fail() {
    let rig = Rig::new().await;
    let mut flushing = JoinSet::new();
    for _ in 0..4 {
        let mut connection = rig.server.connection().await;
        flushing.spawn(async move {
            loop {
                let mut flush = cmd("SCRIPT");
                flush.arg("FLUSH").query_async::<()>(&mut connection).await.expect("flushed");
            }
        });
    }
    // It repeats nothing.
    let (store, kind) = (rig.direct(), Kind::new("k").expect("kind"));
    let (started, mut calls, mut whole) = (Instant::now(), 0, false);
    while calls < 500 || !whole {
        let job = Envelope::builder(queue(), kind.clone()).build().expect("valid");
        let outcomes = store.enqueue(&queue(), &[job]).await.expect("a flush is no error");
        assert!(outcomes[0].is_ok(), "{outcomes:?}");
        calls += 1;
        let stats: String = rig.run(cmd("INFO").arg("commandstats")).await;
        whole = stats.contains("cmdstat_eval:");
        assert!(started.elapsed() < crate::support::PATIENCE, "never flushed at the worst moment");
    }
    flushing.abort_all();
    assert_eq!(store.queue(&queue()).await.expect("queue").pending, calls);
}
