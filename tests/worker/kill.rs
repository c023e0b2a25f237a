//! Workers that are killed, and one that is told to end.

use crate::{
    bench::{Bench, HOUR, Log, Working, client, default_queue, id, ms, succeed, worker},
    process::{LEASE, Process},
    support::Proxy,
};
use sprag::{
    State,
    store::{EndingReason, Operation, Pace},
};
use std::time::{Duration, Instant};

/// CASES 7.
#[tokio::test]
async fn the_job_of_a_killed_worker_runs_again_elsewhere_within_two_leases() {
    let bench = Bench::new().await;
    let process = Process::start(&bench.server.url(), HOUR);
    bench.enqueue(&["a"]).await;
    assert_eq!(bench.started_elsewhere().await, "a");

    let log = Log::new();
    let here = Working::start(worker(&bench.client, &log, {
        let log = log.clone();
        move |_, context| {
            log.add(&format!("attempt {} crash {}", context.attempt(), context.crash()));
            async { Ok(()) }
        }
    }));
    bench.until_blocked(1).await;
    process.kill().await;
    let killed = Instant::now();
    let again = log.wait("start a", 1).await - killed;
    assert!(again < 2 * LEASE, "{again:?}");
    bench.until_done().await;
    assert_eq!(log.all(), ["start a", "attempt 0 crash 1"]);
    assert_eq!(here.stop().await.completed, 1);
}

/// CASES 49.
#[tokio::test]
async fn a_worker_killed_with_the_wake_token_in_hand_delays_the_job_by_two_seconds_at_most() {
    let bench = Bench::new().await;
    let before_killed = Proxy::in_front_of(&bench.server).await;
    let killed = Process::start(&before_killed.url(), HOUR);
    before_killed.wait_seen("blpop", 1).await;

    // The other one's wait is held up, so that the token goes to the one to be killed.
    let before_other = Proxy::in_front_of(&bench.server).await;
    let log = Log::new();
    let other = Working::start(worker(&client(&before_other.url()), &log, succeed));
    before_other.wait_seen("blpop", 1).await;
    before_other.on("blpop").hold_request();
    before_other.wait_struck("blpop", 1).await;

    before_killed.on("claim").hold_request();
    bench.enqueue(&["a"]).await;
    before_killed.wait_struck("claim", 1).await;
    killed.kill().await;
    before_killed.cut_all();
    let since = Instant::now();
    before_other.release();
    let delay = log.wait("start a", 1).await.saturating_duration_since(since);
    assert!(delay < Duration::from_secs(2), "{delay:?}");
    bench.until_done().await;
    assert_eq!(other.stop().await.completed, 1);
}

#[tokio::test]
async fn a_worker_told_to_terminate_finishes_its_job_claims_no_other_and_ends_well() {
    let bench = Bench::new().await;
    let process = Process::start(&bench.server.url(), ms(500));
    bench.enqueue(&["a", "b"]).await;
    assert_eq!(bench.started_elsewhere().await, "a");
    assert!(process.terminate().await);
    let info = bench.info().await;
    assert_eq!((info.completed_today, info.pending, info.active), (1, 1, 0));
    assert_eq!(bench.show("b").await.attempt, 0);
}

/// CASES 4, 51.
#[tokio::test]
async fn a_job_that_kills_its_worker_is_quarantined_and_its_ten_neighbours_complete() {
    let bench = Bench::new().await;
    let neighbours: Vec<String> = (0..10).map(|i| format!("long-{i}")).collect();
    let names: Vec<&str> = neighbours.iter().map(String::as_str).chain(["poison"]).collect();
    bench.enqueue(&names).await;
    let mut deaths = 0;
    while bench.show("poison").await.state != State::Quarantined {
        assert!(deaths < 9, "it is quarantined in the end");
        let mut process = Process::with_slots(&bench.server.url(), ms(1_000), 11);
        tokio::select! {
            _ = process.ended() => deaths += 1,
            () = bench.until_quarantined("poison") => {}
        }
        // Not all of them wait for their back-off: time matters in a test.
        let ids: Vec<_> = names.iter().map(|name| id(name)).collect();
        let store = bench.client.store();
        tokio::time::sleep(LEASE).await;
        store.sweep(&default_queue(), Pace::Now).await.expect("sweep");
        store.operate(&default_queue(), Operation::Run, &ids).await.expect("run");
    }
    assert_eq!(deaths, 3, "as often as the crash limit");
    let last = Process::with_slots(&bench.server.url(), ms(100), 11);
    bench.until("all but the poison are done", |info| info.unfinished == 0).await;
    let info = bench.info().await;
    assert_eq!((info.completed_today, info.quarantined), (10, 1));
    let poison = bench.show("poison").await;
    assert_eq!((poison.attempt, poison.crash), (0, 3));
    let ending = poison.ending.expect("ended");
    assert_eq!(ending.reason, EndingReason::Quarantined);
    assert!(ending.worker.is_some(), "it says who held it last");
    drop(last);
}
