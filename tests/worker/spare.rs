//! An outage is not a crash: who comes back from one extends first, and reclaims later.

use crate::{
    bench::{Bench, Log, Working, client, default_queue, id, ms, succeed, worker},
    support::Proxy,
};
use sprag::{State, WorkerId};
use std::time::{Duration, Instant};

const LEASE: Duration = ms(9_000);

/// Somebody who vanishes with a job at once.
async fn vanish_with(bench: &Bench, name: &str) {
    bench.enqueue(&[name]).await;
    let nobody = WorkerId::new("nobody").expect("id");
    let claim = bench.client.store().claim(&default_queue(), &nobody, 1, ms(100)).await;
    assert_eq!(claim.expect("claim").jobs[0].id, id(name));
}

#[tokio::test]
async fn who_comes_back_from_an_outage_extends_first_and_reclaims_after_a_third_of_a_lease() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let handler = |task: crate::bench::Task, _| async move {
        if task.0 == "long" {
            tokio::time::sleep(ms(6_000)).await;
        }
        Ok(())
    };
    let builder = worker(&client(&proxy.url()), &log, handler).lease(LEASE).concurrency(4);
    let working = Working::start(builder);
    bench.enqueue(&["long"]).await;
    log.wait("start long", 1).await;
    proxy.refuse(true).await;
    proxy.cut_all();
    vanish_with(&bench, "dead").await;
    // As if the outage had outlived this lease: the first who sweeps would take the job.
    bench.run::<()>(&["ZADD", "sprag:{default}:active", "XX", "1", "long"]).await;
    tokio::time::sleep(ms(2_500)).await;
    proxy.refuse(false).await;
    let back = Instant::now();
    let dead = log.wait("start dead", 1).await.saturating_duration_since(back);
    assert!((ms(2_500)..ms(7_500)).contains(&dead), "{dead:?}");
    bench.until_done().await;
    let report = working.stop().await;
    assert_eq!((report.completed, report.lost), (2, 0));
    assert_eq!(log.all(), ["start long", "start dead"]);
    let today = bench.client.store().days(&default_queue(), 1).await.expect("days").remove(0);
    assert_eq!(today.crashed, 1, "only the dead one's");
}

#[tokio::test]
async fn a_queue_that_somebody_broke_keeps_no_other_from_being_reclaimed() {
    let (bench, log) = (Bench::new().await, Log::new());
    bench.run::<()>(&["SET", "sprag:{broken}:active", "no sorted set"]).await;
    let builder = worker(&bench.client, &log, succeed).queue("broken").queue("default");
    let working = Working::start(builder);
    vanish_with_paused_claims(&bench, "dead").await;
    let vanished = Instant::now();
    let delay = log.wait("start dead", 1).await.saturating_duration_since(vanished);
    assert!(delay < ms(4_000), "{delay:?}");
    bench.until_done().await;
    assert_eq!(working.stop().await.completed, 1);
}

/// The same while a worker is there that would take the job: it is made active by hand.
async fn vanish_with_paused_claims(bench: &Bench, name: &str) {
    use sprag::store::Setting::Paused;
    let store = bench.client.store();
    bench.task(name).delay(ms(60_000)).await.expect("admitted");
    assert_eq!(bench.show(name).await.state, State::Scheduled);
    store.set(&default_queue(), &[Paused(true)]).await.expect("paused");
    bench.operate(sprag::store::Operation::Run, name).await;
    let queue = "sprag:{default}:";
    bench.run::<()>(&["RPOP", &format!("{queue}pending:4")]).await;
    bench.run::<()>(&["HSET", &format!("{queue}holder"), name, "7 nobody fp="]).await;
    bench.run::<()>(&["ZADD", &format!("{queue}active"), "1", name]).await;
    store.set(&default_queue(), &[Paused(false)]).await.expect("resumed");
}
