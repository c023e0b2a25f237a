//! Many at once. Each call is atomic, so the outcome does not depend on who comes first.

use crate::trial::*;
use sprag::{StoreError, Timestamp, Unique, When};
use std::collections::HashSet;
use tokio::task::JoinSet;

cases! {
    four_workers_start_a_hundred_jobs_once_each,
    fifty_producers_never_exceed_the_limit,
    one_of_fifty_producers_gets_the_unique_key,
    one_of_fifty_producers_writes_the_id,
    one_of_many_settlements_of_a_job_wins,
}

async fn four_workers_start_a_hundred_jobs_once_each(t: Trial) {
    let past = When::At(Timestamp::from_millis(1));
    let jobs: Vec<_> = (0..100).map(|_| build(t.job().run_at(past))).collect();
    t.offer_all(&jobs).await;
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let t = t.clone();
        workers.spawn(async move {
            let mut started = Vec::new();
            while let Some(job) = t.claim(1).await.pop() {
                t.complete(&held(&job)).await.expect("held");
                started.push(job.id);
                tokio::task::yield_now().await;
            }
            started
        });
    }
    let started: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
    assert_eq!(started.len(), 100);
    assert_eq!(started.iter().collect::<HashSet<_>>().len(), 100);
    assert_eq!(t.info().await.completed_today, 100);
}

async fn fifty_producers_never_exceed_the_limit(t: Trial) {
    t.limit(100).await;
    let mut producers = JoinSet::new();
    for _ in 0..50 {
        let t = t.clone();
        producers.spawn(async move {
            let mut outcomes = Vec::new();
            for _ in 0..3 {
                outcomes.push(t.offer(t.job()).await);
                assert!(t.info().await.unfinished <= 100);
                tokio::task::yield_now().await;
            }
            outcomes
        });
    }
    let outcomes: Vec<_> = producers.join_all().await.into_iter().flatten().collect();
    let full = StoreError::Backpressure {
        queue: t.queue.to_string(),
        limit: 100,
        current: 100,
        incoming: 1,
    };
    let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused, vec![full.clone(); 50]);
    assert_eq!(t.info().await.unfinished, 100);

    t.complete(&t.claim_one().await).await.expect("completed");
    t.enqueue(t.job()).await;
    assert_eq!(t.offer(t.job()).await, Err(full));
}

async fn one_of_fifty_producers_gets_the_unique_key(t: Trial) {
    let mut producers = JoinSet::new();
    for _ in 0..50 {
        let t = t.clone();
        producers.spawn(async move { t.offer(t.job().unique(Unique::key("k"))).await });
    }
    let (winners, losers): (Vec<_>, Vec<_>) =
        producers.join_all().await.into_iter().partition(Result::is_ok);
    let winner = only(winners).expect("admitted").id;
    assert_eq!(losers, vec![Err(duplicate(&winner)); 49]);
}

async fn one_of_fifty_producers_writes_the_id(t: Trial) {
    let mut producers = JoinSet::new();
    for _ in 0..50 {
        let t = t.clone();
        producers.spawn(async move { t.offer(t.named("a")).await.expect("admitted").existing });
    }
    let written = producers.join_all().await.into_iter().filter(|existing| !existing).count();
    assert_eq!((written, t.info().await.pending), (1, 1));
}

async fn one_of_many_settlements_of_a_job_wins(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    let mut settlers = JoinSet::new();
    for verb in Fenced::SETTLING.into_iter().cycle().take(20) {
        let (t, held) = (t.clone(), held.clone());
        settlers.spawn(async move { verb.apply(&t, &held).await });
    }
    let (won, lost): (Vec<_>, Vec<_>) =
        settlers.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost), (1, vec![Err(rejected(&held.id)); 19]));
}
