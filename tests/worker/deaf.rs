//! A worker that cannot hear operators makes up for it.

use crate::{
    bench::{Bench, HOUR, Log, Working, client, ms, until_cancelled, worker},
    support::Proxy,
};
use sprag::{Context, Verdict, store::Operation};
use std::time::{Duration, Instant};

async fn says_why(log: Log, context: Context) -> Result<(), Verdict> {
    log.add(&format!("told {}", context.cancelled().await));
    Ok(())
}

/// CASES 5: pub/sub is never to be had.
#[tokio::test]
async fn a_cancel_whose_push_is_lost_is_told_by_the_next_extension() {
    let lease = ms(1_500);
    for operation in [Operation::Cancel, Operation::Archive] {
        let (bench, log) = (Bench::new().await, Log::new());
        let proxy = Proxy::in_front_of(&bench.server).await;
        proxy.on("subscribe").times(u64::MAX).close_before();
        let handler = {
            let log = log.clone();
            move |_, context| says_why(log.clone(), context)
        };
        let builder = worker(&client(&proxy.url()), &log, handler).lease(lease);
        let working = Working::start(builder.grace(ms(1)));
        bench.enqueue(&["a"]).await;
        log.wait("start a", 1).await;
        let operated = Instant::now();
        bench.operate(operation, "a").await;
        let delay = log.wait("told", 1).await.saturating_duration_since(operated);
        assert!(delay < lease / 3 + ms(400), "{delay:?}");
        assert_eq!(log.all(), ["start a", "told lease_lost"]);
        assert!(proxy.struck("subscribe") > 0);
        assert_eq!(working.stop().await.lost, 1);
    }
}

/// CASES 5: the push falls into the moment between two subscriptions.
#[tokio::test]
async fn a_worker_that_subscribes_anew_finds_out_at_once_what_it_missed() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let handler = {
        let log = log.clone();
        move |_, context| says_why(log.clone(), context)
    };
    let builder = worker(&client(&proxy.url()), &log, handler).lease(HOUR).grace(ms(1));
    let working = Working::start(builder);
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    bench.until_listening().await;
    proxy.on("subscribe").hold_request();
    bench.run::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    proxy.wait_struck("subscribe", 1).await;
    bench.operate(Operation::Cancel, "a").await;
    proxy.release();
    let released = Instant::now();
    let delay = log.wait("told lease_lost", 1).await.saturating_duration_since(released);
    assert!(delay < Duration::from_secs(1), "{delay:?}");
    assert_eq!(working.stop().await.lost, 1);
}

#[tokio::test]
async fn a_wish_whose_push_is_lost_is_heard_at_the_next_beat() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    proxy.on("subscribe").times(u64::MAX).close_before();
    let builder = worker(&client(&proxy.url()), &log, until_cancelled).grace(ms(1));
    let working = Working::start(builder);
    bench.until_listed(1).await;
    bench.ask_all(sprag::store::Wish::Stop).await;
    let asked = Instant::now();
    working.ended().await;
    assert!(asked.elapsed() < Duration::from_secs(7), "{:?}", asked.elapsed());
}
