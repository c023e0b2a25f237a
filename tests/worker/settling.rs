//! Settlements outlast the budget of a call, as long as the job may be this worker's.

use crate::{
    bench::{Bench, Log, Task, Working, ms, succeed, worker},
    support::Proxy,
};
use sprag::{Client, Context, RedisStore};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// A client whose calls are repeated for so long, and no longer.
fn client_with_budget(url: &str, budget: Duration) -> Client {
    Client::new(RedisStore::builder(url).repeat_budget(budget).build().expect("store"))
}

/// A handler that ends when it is let.
fn when_let(
    go: &Arc<Notify>,
) -> impl Fn(Task, Context) -> futures_util::future::BoxFuture<'static, crate::bench::Answer>
+ Clone
+ use<> {
    let go = go.clone();
    move |_, _| {
        let go = go.clone();
        Box::pin(async move {
            go.notified().await;
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_settlement_is_repeated_past_the_budget_of_a_call_and_does_not_storm_the_server() {
    for budget in [Duration::ZERO, ms(200)] {
        let (bench, log, go) = (Bench::new().await, Log::new(), Arc::new(Notify::new()));
        let proxy = Proxy::in_front_of(&bench.server).await;
        let client = client_with_budget(&proxy.url(), budget);
        let working = Working::start(worker(&client, &log, when_let(&go)).lease(ms(900)));
        // The first job teaches the proxy the script's name.
        bench.enqueue(&["a"]).await;
        go.notify_one();
        bench.until_done().await;
        proxy.on("complete").times(u64::MAX).answer_error("BUSY Redis is busy running a script.");
        bench.enqueue(&["b"]).await;
        go.notify_one();
        tokio::time::sleep(ms(2_500)).await;
        let tries = proxy.struck("complete");
        assert!((2..=60).contains(&tries), "{tries} tries with a budget of {budget:?}");
        assert_eq!(bench.info().await.active, 1, "it is still held");
        proxy.disarm();
        bench.until_done().await;
        let report = working.stop().await;
        assert_eq!((report.completed, report.lost, log.count("start")), (2, 0, 2));
    }
}

#[tokio::test]
async fn a_worker_that_ends_gives_a_settlement_up_when_the_lease_is_gone() {
    let (bench, log, go) = (Bench::new().await, Log::new(), Arc::new(Notify::new()));
    let proxy = Proxy::in_front_of(&bench.server).await;
    let client = client_with_budget(&proxy.url(), ms(200));
    let working = Working::start(worker(&client, &log, when_let(&go)).lease(ms(1_500)));
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    proxy.refuse(true).await;
    proxy.cut_all();
    go.notify_one();
    working.shutdown.drain();
    let drained = Instant::now();
    let report = working.ended().await;
    let time = drained.elapsed();
    assert!((ms(500)..ms(4_500)).contains(&time), "{time:?}");
    assert_eq!((report.completed, report.lost), (0, 1));
    let other = Working::start(worker(&bench.client, &log, succeed));
    bench.until_done().await;
    assert_eq!((other.stop().await.completed, log.count("start a")), (1, 2));
}

/// Without loops it cannot go on for ever: it ends when the job may be another's.
#[tokio::test]
async fn a_worker_that_runs_until_empty_ends_when_it_cannot_settle_before_the_lease_is_lost() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let client = client_with_budget(&proxy.url(), ms(100));
    let built = worker(&client, &log, succeed).lease(ms(900)).build();
    let mut worker = built.expect("a worker");
    bench.enqueue(&["a"]).await;
    assert_eq!(worker.run_until_empty().await.expect("it settles").completed, 1);
    proxy.on("complete").times(u64::MAX).answer_error("BUSY Redis is busy running a script.");
    // Leases are not extended either.
    proxy.on("extend").times(u64::MAX).answer_error("BUSY Redis is busy running a script.");
    bench.enqueue(&["b"]).await;
    let error = worker.run_until_empty().await.expect_err("it cannot settle");
    assert!(error.to_string().contains("job b ran, and could not be settled"), "{error}");
    proxy.disarm();
    let report = worker.run_until_empty().await.expect("it settles");
    assert!(report.completed <= 1, "{report:?}");
}
