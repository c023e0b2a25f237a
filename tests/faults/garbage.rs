//! Entries that somebody's hand has broken: what is next to them is not lost for it.

use crate::{
    rig::{LEASE, Rig, queue},
    world::{claim, enqueue, held, id, job, names},
};
use sprag::{
    RedisStore, State, Store, WorkerId,
    store::{Complete, Ended, EndingReason, Pace},
};

const JOBS: [&str; 4] = ["a", "b", "c", "d"];
const GARBAGE: [&str; 5] = ["", "garbage", "-1", "99999999999999999999", "1 2 3 4"];

async fn four_jobs() -> (Rig, RedisStore) {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, JOBS.map(job)).await;
    (rig, store)
}

/// All four are claimed, reclaimed when their holder vanishes, claimed again and completed.
async fn assert_all_run(rig: &Rig, store: &RedisStore, what: &str) {
    let first = claim(store, 9).await;
    assert_eq!(names(&first), JOBS, "{what}");
    rig.advance(LEASE).await;
    let swept = store.sweep(&queue(), Pace::Now).await.expect(what);
    assert_eq!(swept.reclaimed, 4, "{what}");
    let again = claim(store, 9).await;
    assert_eq!(again.len(), 4, "{what}");
    assert!(again[0].fence > first[0].fence, "{what}");
    for job in &again {
        assert_eq!(store.show(&queue(), &job.id).await.expect(what).state, State::Active, "{what}");
        let done = [Complete { held: held(job), result: None }];
        store.complete(&queue(), &done).await.expect(what).remove(0).expect(what);
    }
}

#[tokio::test]
async fn a_broken_count_of_tries_counts_as_none() {
    for garbage in GARBAGE {
        let (rig, store) = four_jobs().await;
        rig.on::<()>("HSET", "tries", &["b", garbage]).await;
        rig.on::<()>("HSET", "meta", &["tried", "1"]).await;
        assert_all_run(&rig, &store, garbage).await;
    }
}

#[tokio::test]
async fn a_broken_holder_is_reclaimed_from_its_record_and_so_are_its_neighbours() {
    for garbage in GARBAGE {
        let (rig, store) = four_jobs().await;
        claim(&store, 9).await;
        rig.on::<()>("HSET", "holder", &["b", garbage]).await;
        rig.advance(LEASE).await;
        let swept = store.sweep(&queue(), Pace::Now).await.expect(garbage);
        assert_eq!(swept.reclaimed, 4, "{garbage}");
        assert_eq!(claim(&store, 9).await.len(), 4, "{garbage}");
    }
}

#[tokio::test]
async fn a_job_with_a_broken_holder_can_be_cancelled() {
    for garbage in GARBAGE {
        let (rig, store) = four_jobs().await;
        claim(&store, 9).await;
        rig.on::<()>("HSET", "holder", &["b", garbage]).await;
        store
            .operate(&queue(), sprag::store::Operation::Cancel, &[id("b")])
            .await
            .expect(garbage)
            .remove(0)
            .expect(garbage);
        assert_eq!(store.queue(&queue()).await.expect(garbage).unfinished, 3, "{garbage}");
    }
}

#[tokio::test]
async fn broken_settings_stop_nothing() {
    let fields = [
        "fence",
        "ghosts",
        "lanes",
        "tried",
        "swept_at",
        "limit",
        "mend",
        "crash_limit",
        "crash_window",
        "max_archived",
        "retain_completed",
        "retain_archived",
        "retain_quarantined",
        "quarantined",
        "crashes",
        "remembered",
        "stats_day",
        "entries",
    ];
    for field in fields {
        for garbage in GARBAGE {
            // A limit of -1 or a paused queue is a setting, a number of ghosts that high hides jobs.
            if ["limit", "ghosts", "crash_limit"].contains(&field) && garbage.parse::<f64>().is_ok()
            {
                continue;
            }
            let what = format!("{field} {garbage:?}");
            let (rig, store) = four_jobs().await;
            rig.on::<()>("HSET", "meta", &[field, garbage]).await;
            assert_all_run(&rig, &store, &what).await;
            store.queue(&queue()).await.expect(&what);
        }
    }
}

#[tokio::test]
async fn what_only_rust_can_tell_to_be_undecodable_is_archived_by_the_claim_that_meets_it() {
    let (rig, store) = four_jobs().await;
    let record: String = rig.on("HGET", "jobs", &["b"]).await;
    let broken = record.replace(" kind=", " codec=zzz kind=");
    rig.on::<()>("HSET", "jobs", &["b", &broken]).await;
    let worker = WorkerId::new("w:1").expect("worker");
    let claim = store.claim(&queue(), &worker, 9, LEASE).await.expect("claim");
    assert_eq!(names(&claim.jobs), ["a", "c", "d"]);
    let (state, reason) = (State::Archived, EndingReason::Undecodable);
    assert_eq!(claim.ended, [Ended { id: id("b"), state, reason }]);
    let ending = store.show(&queue(), &id("b")).await.expect("b").ending.expect("ended");
    assert_eq!(ending.reason, reason);
    assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 3);
}
