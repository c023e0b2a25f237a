//! Workers say that they are there.

use crate::trial::*;
use sprag::{
    Timestamp,
    store::{WorkerInfo, WorkerState},
};

cases! {
    a_worker_that_beats_is_listed,
    a_beat_renews_what_a_worker_says,
    a_beat_is_counted_by_the_stores_clock,
    a_retired_worker_is_listed_no_more,
    retiring_an_unknown_worker_is_no_error,
    workers_are_sorted_by_id,
    a_worker_is_gone_after_a_minute_and_back_with_its_next_beat,
    a_worker_is_forgotten_after_an_hour,
}

fn info(id: &str, busy: usize) -> WorkerInfo {
    WorkerInfo {
        id: id.to_owned(),
        queues: vec!["email".to_owned(), "sms".to_owned()],
        host: "hôst".to_owned(),
        pid: 7,
        version: "1.2.3".to_owned(),
        concurrency: 10,
        busy,
        state: WorkerState::Running,
        jobs: Vec::new(),
        started_at: Timestamp::from_millis(5),
        seen_at: Timestamp::from_millis(0),
        gone: true,
    }
}

async fn beat(t: &Trial, id: &str, busy: usize) {
    t.store.beat(&info(id, busy)).await.expect("beat");
}

async fn workers(t: &Trial) -> Vec<WorkerInfo> {
    t.store.workers().await.expect("workers")
}

async fn ids(t: &Trial) -> Vec<String> {
    workers(t).await.into_iter().map(|worker| worker.id).collect()
}

async fn a_worker_that_beats_is_listed(t: Trial) {
    assert_eq!(workers(&t).await, []);
    beat(&t, "w:1", 3).await;
    let listed = only(workers(&t).await);
    assert_eq!(listed, WorkerInfo { seen_at: listed.seen_at, gone: false, ..info("w:1", 3) });
}

async fn a_beat_renews_what_a_worker_says(t: Trial) {
    beat(&t, "w:1", 3).await;
    t.age_beats(secs(30)).await;
    let before = only(workers(&t).await);
    beat(&t, "w:1", 4).await;
    let after = only(workers(&t).await);
    assert_eq!((before.busy, after.busy), (3, 4));
    assert!(after.seen_at >= before.seen_at + secs(30));
}

async fn a_beat_is_counted_by_the_stores_clock(t: Trial) {
    beat(&t, "w:1", 0).await;
    assert_ne!(only(workers(&t).await).seen_at, info("w:1", 0).seen_at);
}

async fn a_retired_worker_is_listed_no_more(t: Trial) {
    beat(&t, "w:1", 0).await;
    beat(&t, "w:2", 0).await;
    for _ in 0..2 {
        assert_eq!(t.store.retire(&worker("w:1")).await, Ok(()));
        assert_eq!(ids(&t).await, ["w:2"]);
    }
    beat(&t, "w:1", 0).await;
    assert_eq!(ids(&t).await, ["w:1", "w:2"]);
}

async fn retiring_an_unknown_worker_is_no_error(t: Trial) {
    assert_eq!(t.store.retire(&worker("nobody")).await, Ok(()));
    assert_eq!(workers(&t).await, []);
}

async fn workers_are_sorted_by_id(t: Trial) {
    for n in [7, 3, 9, 1, 5] {
        beat(&t, &format!("w:{n}"), 0).await;
    }
    assert_eq!(ids(&t).await, ["w:1", "w:3", "w:5", "w:7", "w:9"]);
}

// Whole tens of seconds apart: the list on Redis is kept by a real clock.
async fn a_worker_is_gone_after_a_minute_and_back_with_its_next_beat(t: Trial) {
    beat(&t, "w:1", 0).await;
    for (aged, gone) in [(50, false), (10, true), (60, true)] {
        t.age_beats(secs(aged)).await;
        assert_eq!(only(workers(&t).await).gone, gone, "{aged}");
    }
    beat(&t, "w:1", 0).await;
    assert!(!only(workers(&t).await).gone);
}

async fn a_worker_is_forgotten_after_an_hour(t: Trial) {
    beat(&t, "old", 0).await;
    t.age_beats(HOUR - secs(10)).await;
    beat(&t, "new", 0).await;
    assert_eq!(ids(&t).await, ["new", "old"]);
    t.age_beats(secs(10)).await;
    for _ in 0..2 {
        assert_eq!(ids(&t).await, ["new"]);
    }
    beat(&t, "old", 0).await;
    assert_eq!(ids(&t).await, ["new", "old"]);
}
