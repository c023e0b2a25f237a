//! Calls on a queue that nobody has made leave no key: nobody would ever sweep it.

use crate::{
    rig::{LEASE, Rig, other_queue},
    world::{id, worker},
};
use sprag::{
    Envelope, Fence, Kind, RedisStore, Store, Timestamp, When,
    model::Fingerprint,
    store::{Archive, ArchiveReason, Complete, Held, Operation, Pace, Retry, Snooze},
};

/// A verb each; whatever it answers.
async fn call_all(rig: &Rig, store: &RedisStore) {
    let queue = other_queue();
    let before = rig.dump().await;
    let unchanged = async |verb: &str| {
        assert!(rig.dump().await == before, "{verb} leaves something");
    };
    drop(store.claim(&queue, &worker(), 5, LEASE).await.expect("claim"));
    unchanged("claim").await;
    for pace in [Pace::Now, Pace::Shared] {
        drop(store.sweep(&queue, pace).await.expect("sweep"));
        unchanged("sweep").await;
    }
    let held = Held { id: id("a"), fence: Fence(7) };
    drop(store.extend(&queue, std::slice::from_ref(&held), LEASE).await.expect("extend"));
    unchanged("extend").await;
    store.progress(&queue, &held, "1").await.expect_err("not held");
    unchanged("progress").await;
    let done = Complete { held: held.clone(), result: Some("1".into()) };
    drop(store.complete(&queue, &[done]).await.expect("complete"));
    unchanged("complete").await;
    let failed = Retry { held: held.clone(), delay: LEASE, error: "no".into() };
    drop(store.retry(&queue, &[failed]).await.expect("retry"));
    unchanged("retry").await;
    let reason = ArchiveReason::Discarded;
    let given_up = Archive { held: held.clone(), reason, error: Some("no".into()) };
    drop(store.archive(&queue, &[given_up]).await.expect("archive"));
    unchanged("archive").await;
    let later = Snooze { held: held.clone(), delay: LEASE };
    drop(store.snooze(&queue, &[later]).await.expect("snooze"));
    unchanged("snooze").await;
    drop(store.requeue(&queue, &[held]).await.expect("requeue"));
    unchanged("requeue").await;
    for operation in [Operation::Cancel, Operation::Run, Operation::Rerun, Operation::Delete] {
        drop(store.operate(&queue, operation, &[id("a")]).await.expect("operate"));
        unchanged("operate").await;
    }
    store.release(&queue, &Fingerprint::of("k", b"")).await.expect_err("not closed");
    unchanged("release").await;
    let past = Envelope::builder(queue.clone(), Kind::new("k").expect("kind"))
        .deadline(When::At(Timestamp::from_millis(1)))
        .build()
        .expect("within its bounds");
    let outcome =
        store.enqueue(&queue, std::slice::from_ref(&past)).await.expect("enqueue").remove(0);
    outcome.expect_err("past its deadline");
    store.enqueue_atomic(&queue, &[past]).await.expect_err("past its deadline");
    unchanged("enqueue").await;
}

#[tokio::test]
async fn a_call_on_a_queue_that_nobody_made_leaves_no_key() {
    let rig = Rig::new().await;
    call_all(&rig, &rig.direct()).await;
}

#[tokio::test]
async fn whoever_still_calls_a_deleted_queue_leaves_no_key() {
    let rig = Rig::new().await;
    let store = rig.direct();
    let job = Envelope::builder(other_queue(), Kind::new("k").expect("kind")).build();
    let outcome = store.enqueue(&other_queue(), &[job.expect("within its bounds")]).await;
    outcome.expect("enqueue").remove(0).expect("admitted");
    drop(store.claim(&other_queue(), &worker(), 5, LEASE).await.expect("claim"));
    store.delete_queue(&other_queue(), true).await.expect("deleted");
    // The queue's clock as well is one of its keys.
    rig.advance(LEASE).await;
    call_all(&rig, &store).await;
}
