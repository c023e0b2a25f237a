//! The repeat of a claim.

use crate::{
    rig::{LEASE, Rig, assert_same, queue},
    world::{World, claim, enqueue, job, names},
};
use sprag::{
    RedisStore, Store,
    store::{Claimed, Pace},
};

/// Jobs `a` to `d` wait; the scripts are loaded and the proxy knows their names.
async fn waiting() -> Rig {
    let rig = Rig::new().await;
    World::build(&rig, &rig.store()).await;
    rig.empty().await;
    enqueue(&rig.direct(), ["a", "b", "c", "d"].map(job)).await;
    rig
}

/// A claim of two that waits for its reply; `n` such claims wait now.
async fn claim_without_reply(
    rig: &Rig,
    store: &RedisStore,
    n: u64,
) -> tokio::task::JoinHandle<Vec<Claimed>> {
    let struck = rig.proxy.struck("claim");
    for _ in 0..n {
        rig.proxy.on("claim").hold_reply();
    }
    let store = store.clone();
    let waiting = tokio::spawn(async move { claim(&store, 2).await });
    rig.proxy.wait_struck("claim", struck + 1).await;
    waiting
}

#[tokio::test]
async fn the_repeat_of_a_claim_hands_over_the_same_jobs_with_a_renewed_lease() {
    let rig = waiting().await;
    let waiting = claim_without_reply(&rig, &rig.store(), 1).await;
    rig.advance(LEASE / 2).await;
    rig.proxy.cut_all();
    let jobs = waiting.await.expect("claim");
    assert_eq!(names(&jobs), ["a", "b"]);
    let ends = rig.now().await + LEASE.as_millis() as u64;
    assert!(jobs.iter().all(|job| job.lease_expires_at.as_millis() == ends), "{jobs:?}");
    assert_eq!(rig.dump().await.get("active"), [format!("a = {ends}"), format!("b = {ends}")]);
}

#[tokio::test]
async fn the_repeat_of_a_claim_whose_jobs_were_reclaimed_hands_over_nothing() {
    let rig = waiting().await;
    let waiting = claim_without_reply(&rig, &rig.store(), 1).await;
    rig.advance(LEASE).await;
    let swept = rig.direct().sweep(&queue(), Pace::Now).await.expect("sweep");
    assert_eq!(swept.reclaimed, 2);
    let before = rig.dump().await;
    rig.proxy.cut_all();
    assert!(waiting.await.expect("claim").is_empty());
    assert_same(&before, &rig.dump().await, "the repeat of a claim");
    assert_eq!(names(&claim(&rig.direct(), 9).await), ["c", "d", "a", "b"]);
}

#[tokio::test]
async fn the_repeat_of_a_claim_whose_jobs_another_holds_leaves_them_to_it() {
    let rig = waiting().await;
    let waiting = claim_without_reply(&rig, &rig.store(), 1).await;
    rig.advance(LEASE).await;
    let other = rig.direct();
    other.sweep(&queue(), Pace::Now).await.expect("sweep");
    let theirs = claim(&other, 3).await;
    assert_eq!(names(&theirs), ["c", "d", "a"]);
    rig.proxy.cut_all();
    assert!(waiting.await.expect("claim").is_empty());
    let held: Vec<_> = theirs.iter().map(crate::world::held).collect();
    let extended = other.extend(&queue(), &held, LEASE).await.expect("extend");
    assert!(extended.iter().all(Result::is_ok), "{extended:?}");
}

#[tokio::test]
async fn the_repeat_of_a_claim_hands_over_what_is_still_held() {
    let rig = waiting().await;
    let waiting = claim_without_reply(&rig, &rig.store(), 1).await;
    rig.direct()
        .operate(&queue(), sprag::store::Operation::Cancel, &[crate::world::id("a")])
        .await
        .expect("cancel");
    rig.proxy.cut_all();
    assert_eq!(names(&waiting.await.expect("claim")), ["b"]);
}

/// CASES 52.
#[tokio::test]
async fn two_fetchers_whose_replies_are_lost_each_get_their_own_jobs() {
    let rig = waiting().await;
    let store = rig.store();
    let struck = rig.proxy.struck("claim");
    // The first reply holds back the second on their connection.
    rig.proxy.on("claim").hold_reply();
    let seen = rig.proxy.seen("claim");
    let fetch = || {
        let store = store.clone();
        tokio::spawn(async move { claim(&store, 2).await })
    };
    let (one, two) = (fetch(), fetch());
    rig.proxy.wait_struck("claim", struck + 1).await;
    rig.proxy.wait_seen("claim", seen + 2).await;
    // Both are applied when the last job is held.
    while rig.dump().await.get("active").len() < 4 {
        tokio::task::yield_now().await;
    }
    rig.proxy.cut_all();
    let (one, two) = (one.await.expect("claim"), two.await.expect("claim"));
    assert_ne!(one[0].fence, two[0].fence);
    assert_eq!((one.len(), two.len()), (2, 2));
    let mut all = [names(&one), names(&two)].concat();
    all.sort_unstable();
    assert_eq!(all, ["a", "b", "c", "d"]);
}

/// CASES 54.
#[tokio::test]
async fn a_claim_that_arrives_after_its_repeat_was_answered_claims_nothing() {
    let rig = waiting().await;
    let store = rig.store();
    rig.proxy.on("claim").arrive_late();
    assert_eq!(names(&claim(&store, 2).await), ["a", "b"]);
    let before = rig.dump().await;
    rig.proxy.release_late().await;
    assert_same(&before, &rig.dump().await, "a late claim");
    assert_eq!(names(&claim(&store, 9).await), ["c", "d"]);
}
