//! Entries of what options and operators have left, broken by somebody's hand: they cost themselves.

use crate::{
    rig::{HOUR, LEASE, Rig, queue},
    world::{build, claim, enqueue, fingerprint, held, id, job, names},
};
use sprag::{
    RedisStore, State, Store, StoreError, Unique,
    store::{Complete, Operation, Outcomes, Pace, Setting, Swept},
};

const GARBAGE: [&str; 10] = [
    "",
    " ",
    "garbage",
    "-1",
    "99999999999999999999",
    "1 2 3 4",
    "x throttle",
    "x 1 - remember=5",
    "x 1 - fp=z remember=z first=z",
    "ffff 99999999999999999999",
];

async fn sweep(store: &RedisStore, what: &str) -> Swept {
    store.sweep(&queue(), Pace::Now).await.expect(what)
}

async fn operate(store: &RedisStore, operation: Operation, name: &str, what: &str) {
    let outcomes = store.operate(&queue(), operation, &[id(name)]).await;
    outcomes.expect(what).remove(0).expect(what);
}

async fn complete_all(store: &RedisStore, what: &str) -> usize {
    let claimed = claim(store, 100).await;
    let jobs: Vec<_> =
        claimed.iter().map(|job| Complete { held: held(job), result: None }).collect();
    let outcomes: Outcomes<()> = store.complete(&queue(), &jobs).await.expect(what);
    assert!(outcomes.iter().all(Result::is_ok), "{what}: {outcomes:?}");
    outcomes.len()
}

/// What is kept of a job is broken, and its time is over.
async fn breaks(rig: &Rig, hash: &str, name: &str, garbage: &str) {
    rig.on::<()>("HSET", hash, &[name, garbage]).await;
    rig.on::<()>("ZADD", "expiry", &["1", &format!("{hash} {name}")]).await;
}

#[tokio::test]
async fn a_broken_unique_key_is_free() {
    let rig = Rig::new().await;
    for garbage in GARBAGE {
        rig.empty().await;
        let store = rig.direct();
        let keyed = |name| job(name).unique(Unique::key("k"));
        enqueue(&store, [keyed("a")]).await;
        let keys: Vec<String> = rig.on("HKEYS", "unique", &[]).await;
        breaks(&rig, "unique", &keys[0], garbage).await;
        enqueue(&store, [keyed("b"), job("c")]).await;
        operate(&store, Operation::Cancel, "b", garbage).await;
        breaks(&rig, "unique", &keys[0], garbage).await;
        operate(&store, Operation::Rerun, "b", garbage).await;
        breaks(&rig, "unique", &keys[0], garbage).await;
        sweep(&store, garbage).await;
        assert_eq!(complete_all(&store, garbage).await, 3, "{garbage}");
    }
}

#[tokio::test]
async fn a_broken_identity_is_forgotten() {
    let rig = Rig::new().await;
    for garbage in GARBAGE.iter().filter(|garbage| !garbage.starts_with("ffff")) {
        rig.empty().await;
        let store = rig.direct();
        enqueue(&store, [job("past").remember(HOUR), job("other").remember(HOUR)]).await;
        assert_eq!(complete_all(&store, garbage).await, 2);
        breaks(&rig, "seen", "past", garbage).await;
        let jobs = build([job("past"), job("other")]);
        let outcomes = store.enqueue(&queue(), &jobs).await.expect(garbage);
        let existing: Vec<_> =
            outcomes.into_iter().map(|outcome| outcome.expect(garbage).existing).collect();
        assert_eq!(existing, [false, true], "{garbage}");
        sweep(&store, garbage).await;
        assert_eq!(complete_all(&store, garbage).await, 1, "{garbage}");
    }
}

#[tokio::test]
async fn a_broken_quarantine_still_closes_and_can_be_released() {
    let rig = Rig::new().await;
    for garbage in GARBAGE.iter().chain(&["since=x crashes=x sample= worker=", "sample=a"]) {
        rig.empty().await;
        let store = rig.direct();
        for name in ["good", "bad"] {
            store.quarantine(&queue(), &fingerprint(name), None).await.expect(garbage);
        }
        rig.on::<()>("HSET", "quarantine", &[fingerprint("bad").as_str(), garbage]).await;
        rig.on::<()>("HSET", "quarantine", &["no fingerprint", garbage]).await;
        let refused = store.enqueue(&queue(), &build([job("bad"), job("other")])).await;
        let refused = refused.expect(garbage);
        assert!(matches!(refused[0], Err(StoreError::Quarantined { .. })), "{garbage}");
        assert!(refused[1].is_ok(), "{garbage}");
        sweep(&store, garbage).await;
        let listed = store.quarantines(&queue()).await.expect(garbage);
        assert_eq!(listed.len(), 2, "{garbage}: {listed:?}");
        store.release(&queue(), &fingerprint("bad")).await.expect(garbage);
        enqueue(&store, [job("bad")]).await;
        assert_eq!(complete_all(&store, garbage).await, 2, "{garbage}");
    }
}

#[tokio::test]
async fn a_broken_count_of_crashes_is_begun_anew() {
    let rig = Rig::new().await;
    for garbage in GARBAGE {
        rig.empty().await;
        let store = rig.direct();
        enqueue(&store, ["a", "b"].map(job)).await;
        claim(&store, 9).await;
        rig.advance(LEASE).await;
        breaks(&rig, "crashes", fingerprint("a").as_str(), garbage).await;
        let swept = sweep(&store, garbage).await;
        assert_eq!((swept.reclaimed, swept.quarantined), (2, 0), "{garbage}");
        breaks(&rig, "crashes", fingerprint("a").as_str(), garbage).await;
        assert_eq!(complete_all(&store, garbage).await, 2, "{garbage}");
        let left: u64 = rig.on("HLEN", "crashes", &[]).await;
        assert_eq!(left, 0, "{garbage}");
    }
}

#[tokio::test]
async fn a_job_whose_ending_is_broken_is_run_again_deleted_and_evicted() {
    let rig = Rig::new().await;
    for garbage in GARBAGE {
        rig.empty().await;
        let store = rig.direct();
        enqueue(&store, ["again", "gone", "evicted"].map(job)).await;
        for name in ["again", "gone", "evicted"] {
            operate(&store, Operation::Cancel, name, garbage).await;
            rig.on::<()>("HSET", "endings", &[name, garbage]).await;
        }
        operate(&store, Operation::Rerun, "again", garbage).await;
        operate(&store, Operation::Delete, "gone", garbage).await;
        assert_eq!(complete_all(&store, garbage).await, 1, "{garbage}");
        rig.advance(8 * 24 * HOUR).await;
        assert_eq!(sweep(&store, garbage).await.evicted, 1, "{garbage}");
        let left: u64 = rig.on("HLEN", "jobs", &[]).await;
        assert_eq!(left, 0, "{garbage}");
    }
}

#[tokio::test]
async fn a_quarantined_job_whose_ending_is_broken_does_not_keep_its_neighbours() {
    let rig = Rig::new().await;
    for garbage in GARBAGE {
        rig.empty().await;
        let store = rig.direct();
        let same = |name| job(name).payload("same", sprag::Codec::Raw);
        enqueue(&store, ["a", "b"].map(same)).await;
        let fingerprint = crate::world::fingerprint_of("same");
        store.quarantine(&queue(), &fingerprint, None).await.expect(garbage);
        assert!(claim(&store, 9).await.is_empty());
        rig.on::<()>("HSET", "endings", &["a", garbage]).await;
        let released = store.release(&queue(), &fingerprint).await.expect(garbage);
        assert_eq!(released.released, 1, "{garbage}");
        assert_eq!(names(&claim(&store, 9).await), ["b"], "{garbage}");
        operate(&store, Operation::Delete, "a", garbage).await;
    }
}

#[tokio::test]
async fn broken_timers_are_dropped() {
    let (rig, kinds) = (Rig::new().await, ["answers", "seen", "crashes", "unique", "deadline"]);
    let store = rig.direct();
    enqueue(&store, ["a", "b"].map(job)).await;
    for garbage in GARBAGE {
        rig.on::<()>("ZADD", "expiry", &["1", garbage]).await;
        for kind in kinds {
            let (bare, named) = (kind.to_owned(), format!("{kind} {garbage}"));
            rig.on::<()>("ZADD", "expiry", &["1", &bare, "2", &named]).await;
        }
    }
    rig.on::<()>("ZADD", "expiry", &["1", "deadline a"]).await;
    sweep(&store, "timers").await;
    let left: u64 = rig.on("ZCOUNT", "expiry", &["-inf", "1000"]).await;
    assert_eq!(left, 0);
    assert_eq!(complete_all(&store, "timers").await, 2);
}

#[tokio::test]
async fn broken_progress_is_shown_as_it_is_and_gone_with_the_run() {
    let rig = Rig::new().await;
    for garbage in GARBAGE {
        rig.empty().await;
        let store = rig.direct();
        enqueue(&store, [job("a")]).await;
        let claimed = claim(&store, 1).await;
        store.progress(&queue(), &held(&claimed[0]), "1").await.expect(garbage);
        rig.on::<()>("HSET", "progress", &["a", garbage]).await;
        let info = store.show(&queue(), &id("a")).await.expect(garbage);
        assert_eq!((info.state, info.progress.as_deref()), (State::Active, Some(garbage)));
        let done = [Complete { held: held(&claimed[0]), result: None }];
        store.complete(&queue(), &done).await.expect(garbage).remove(0).expect(garbage);
        let left: u64 = rig.on("EXISTS", "progress", &[]).await;
        assert_eq!(left, 0, "{garbage}");
    }
}

#[tokio::test]
async fn a_broken_deadline_or_mending_cursor_stops_nobody() {
    let rig = Rig::new().await;
    for garbage in ["x", "-", "+", "99999999999999999999999"] {
        rig.empty().await;
        let store = rig.direct();
        let settings = [Setting::CrashLimit(Some(9))];
        store.set(&queue(), &settings).await.expect(garbage);
        enqueue(&store, ["a", "b", "c"].map(job)).await;
        let record: String = rig.on("HGET", "jobs", &["b"]).await;
        let broken = record.replace(" kind=", &format!(" deadline={garbage} kind="));
        rig.on::<()>("HSET", "jobs", &["b", &broken]).await;
        operate(&store, Operation::Cancel, "b", garbage).await;
        operate(&store, Operation::Rerun, "b", garbage).await;
        assert!(names(&claim(&store, 9).await).starts_with(&["a", "c"]), "{garbage}");
        rig.on::<()>("ZREM", "active", &["a"]).await;
        rig.on::<()>("HSET", "meta", &["mend", garbage]).await;
        assert!(sweep(&store, garbage).await.reclaimed >= 1, "{garbage}");
        rig.advance(LEASE).await;
        assert!(sweep(&store, garbage).await.reclaimed >= 1, "{garbage}");
        assert!(complete_all(&store, garbage).await >= 2, "{garbage}");
    }
}
