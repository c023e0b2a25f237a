//! Callers: who repeats what, who comes too late, who is forgotten.

use crate::{
    case::Case,
    rig::{Rig, assert_same, queue},
    support::ANY_SCRIPT,
    wire::Wire,
    world::{World, build, claim, enqueue, held, job, names},
};
use sprag::{
    RedisStore, Store, StoreError,
    store::{Complete, Pace},
};
use std::{sync::Arc, time::Duration};

/// A budget (60 s) and a minute more, and then some.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60 + 61);

/// A rig whose scripts are loaded and whose proxy knows their names.
async fn warm_rig() -> Rig {
    let rig = Rig::new().await;
    World::build(&rig, &rig.store()).await;
    rig.empty().await;
    rig
}

async fn sweep(store: &RedisStore) {
    store.sweep(&queue(), Pace::Now).await.expect("sweep");
}

#[tokio::test]
async fn a_request_later_than_its_callers_next_call_does_nothing() {
    let rig = warm_rig().await;
    let store = rig.store();
    rig.proxy.on("enqueue").arrive_late();
    enqueue(&store, [job("a")]).await;
    enqueue(&store, [job("b")]).await;
    assert_eq!(names(&claim(&rig.direct(), 1).await), ["a"]);
    let before = rig.dump().await;
    assert_eq!(rig.proxy.release_late().await, ["+LATE\r\n"]);
    assert_same(&before, &rig.dump().await, "a late request");
}

#[tokio::test]
async fn a_request_that_its_caller_gave_up_does_nothing_after_the_next_call() {
    let rig = warm_rig().await;
    let store = rig.hasty_store();
    rig.proxy.on("enqueue").arrive_late();
    let given_up = store.enqueue(&queue(), &build([job("a")])).await;
    assert!(matches!(given_up, Err(StoreError::Unavailable(_))), "{given_up:?}");
    enqueue(&store, [job("b")]).await;
    assert_eq!(rig.proxy.release_late().await, ["+LATE\r\n"]);
    assert_eq!(names(&claim(&store, 10).await), ["b"]);
}

#[tokio::test]
async fn without_a_budget_a_fault_is_unavailable_and_the_next_call_works() {
    let rig = warm_rig().await;
    for wire in Wire::ALL.into_iter().filter(|wire| wire.befalls_plain_commands()) {
        rig.empty().await;
        let (store, struck) = (rig.hasty_store(), rig.proxy.struck("enqueue"));
        wire.arm(&rig.proxy, "enqueue", 0);
        let (queue, jobs) = (queue(), build([job("a")]));
        let (answer, ()) = tokio::join!(
            store.enqueue(&queue, &jobs),
            wire.meanwhile(&rig.proxy, "enqueue", struck)
        );
        if !matches!(wire, Wire::Split) {
            assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{wire:?}: {answer:?}");
        }
        rig.proxy.disarm();
        rig.proxy.release_late().await;
        enqueue(&store, [job("b")]).await;
        let after = claim(&rig.direct(), 10).await;
        assert_eq!(names(&after).iter().filter(|name| **name == "b").count(), 1, "{wire:?}");
        assert!(after.len() <= 2, "{wire:?}");
    }
}

#[tokio::test]
async fn a_call_dropped_while_its_reply_is_held_is_done_once_and_the_next_works() {
    let rig = warm_rig().await;
    for case in [Case::EnqueuePlain, Case::ClaimOne, Case::ArchiveWithError, Case::RequeueAll] {
        let world = case.prepare(&rig, &rig.direct()).await;
        let seen = rig.proxy.seen(case.script());
        case.call(&rig.store(), &world).await;
        let once = rig.dump().await.of_jobs();
        // The one that does it is the last: a call with something rare is asked for more keys first.
        let before = rig.proxy.seen(case.script()) - seen - 1;

        let world = Arc::new(case.prepare(&rig, &rig.direct()).await);
        let (store, struck) = (rig.store(), rig.proxy.struck(case.script()));
        rig.proxy.on(case.script()).after(before).hold_reply();
        let call = tokio::spawn({
            let (store, world) = (store.clone(), world.clone());
            async move { case.call(&store, &world).await }
        });
        rig.proxy.wait_struck(case.script(), struck + 1).await;
        call.abort();
        assert!(call.await.expect_err("aborted").is_cancelled());
        rig.proxy.release();
        // Reads only: what came of the dropped call is compared.
        store.show(&queue(), &crate::world::id("later")).await.expect("the next call works");
        // An enqueue's caller was dropped before it came to put the queue on the list again.
        assert_same(&once, &rig.dump().await.of_jobs(), &format!("{case:?}, dropped"));
    }
}

#[tokio::test]
async fn a_call_dropped_before_the_server_saw_it_is_done_once_when_it_arrives() {
    let rig = warm_rig().await;
    let store = rig.store();
    rig.proxy.on("enqueue").hold_request();
    let dropped = tokio::spawn({
        let store = store.clone();
        async move { enqueue(&store, [job("a")]).await }
    });
    rig.proxy.wait_struck("enqueue", 1).await;
    dropped.abort();
    let next = tokio::spawn({
        let store = store.clone();
        async move { enqueue(&store, [job("b")]).await }
    });
    rig.proxy.release();
    next.await.expect("the next call works");
    assert_eq!(names(&claim(&store, 10).await), ["a", "b"]);
}

#[tokio::test]
async fn an_idle_caller_is_forgotten_and_a_busy_one_is_not() {
    let rig = warm_rig().await;
    let (idle, busy) = (rig.direct(), rig.store());
    enqueue(&idle, [job("a")]).await;
    for i in 0..3 {
        rig.advance(FORGOTTEN_AFTER / 2).await;
        enqueue(&busy, [job(&format!("b-{i}"))]).await;
        sweep(&busy).await;
    }
    let dump = rig.dump().await;
    assert_eq!((dump.get("answers").len(), dump.get("expiry").len()), (1, 1), "{:?}", dump.0);

    rig.advance(FORGOTTEN_AFTER).await;
    sweep(&busy).await;
    let dump = rig.dump().await;
    assert!(dump.get("answers").is_empty() && dump.get("expiry").is_empty(), "{:?}", dump.0);
}

#[tokio::test]
async fn many_idle_callers_are_forgotten_in_slices() {
    let rig = warm_rig().await;
    let store = rig.store();
    let calls = (0..250).map(|i| {
        let store = store.clone();
        async move { enqueue(&store, [job(&format!("j-{i}"))]).await }
    });
    futures_util::future::join_all(calls).await;
    let callers = rig.dump().await.get("answers").len();
    assert!(callers > 100, "more than a slice: {callers}");
    rig.advance(FORGOTTEN_AFTER).await;
    sweep(&store).await;
    let dump = rig.dump().await;
    assert!(dump.get("answers").is_empty() && dump.get("expiry").is_empty());
}

#[tokio::test]
async fn one_after_another_calls_share_a_caller() {
    let rig = warm_rig().await;
    let store = rig.store();
    for i in 0..20 {
        enqueue(&store, [job(&format!("j-{i}"))]).await;
    }
    for job in claim(&store, 20).await {
        let done = Complete { held: held(&job), result: None };
        store.complete(&queue(), &[done]).await.expect("complete");
    }
    assert_eq!(rig.dump().await.get("answers").len(), 1);
    assert!(rig.proxy.seen(ANY_SCRIPT) > 0);
}
