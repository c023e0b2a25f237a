//! What one queue, or one namespace, does never reaches another.

use crate::{
    rig::{LEASE, Rig, queue},
    world::{claim, enqueue, job, worker},
};
use sprag::{
    Namespace, RedisStore, Store, StoreError,
    store::{Operation, Pace, Setting},
};
use std::time::Duration;

fn store(rig: &Rig, namespace: &str) -> RedisStore {
    let namespace = Namespace::new(namespace).expect("namespace");
    RedisStore::builder(rig.server.url()).namespace(namespace).build().expect("store")
}

/// CASES 41.
#[tokio::test]
async fn two_namespaces_on_one_redis_never_meet() {
    let rig = Rig::new().await;
    let (one, two) = (store(&rig, "one"), store(&rig, "two"));
    enqueue(&one, [job("a")]).await;
    assert_eq!(one.queues().await.expect("queues"), [queue()]);
    assert!(two.queues().await.expect("queues").is_empty());
    let absent = two.queue(&queue()).await;
    assert!(matches!(absent, Err(StoreError::NotFound(_))), "{absent:?}");
    assert_eq!(two.wait(&[queue()], Duration::from_millis(20)).await, Ok(None));
    enqueue(&two, [job("a")]).await;
    two.set(&queue(), &[Setting::Limit(Some(1)), Setting::Paused(true)]).await.expect("set");
    assert!(claim(&two, 9).await.is_empty(), "paused there");
    let held = claim(&one, 9).await;
    assert_eq!(held.len(), 1, "and not here");
    two.operate(&queue(), Operation::Cancel, &[crate::world::id("a")]).await.expect("cancel");
    let extended = one.extend(&queue(), &[crate::world::held(&held[0])], LEASE).await;
    assert_eq!(extended, Ok(vec![Ok(())]), "cancelled there, running here");
    two.delete_queue(&queue(), true).await.expect("deleted");
    assert_eq!(one.queue(&queue()).await.expect("queue").active, 1);
}

/// CASES 42.
#[tokio::test]
async fn a_deleted_queue_leaves_no_key_and_is_listed_again_by_the_next_enqueue_of_another_process()
{
    let rig = Rig::new().await;
    let (here, there) = (store(&rig, "sprag"), store(&rig, "sprag"));
    enqueue(&there, [job("a"), job("b"), job("c")]).await;
    claim(&here, 1).await;
    here.sweep(&queue(), Pace::Now).await.expect("sweep");
    here.delete_queue(&queue(), true).await.expect("deleted");
    let keys: Vec<String> = rig.run(redis::cmd("KEYS").arg("sprag:{q}:*")).await;
    let of_the_test = |key: &String| !key.ends_with(":clock");
    assert_eq!(keys.into_iter().filter(of_the_test).collect::<Vec<_>>(), Vec::<String>::new());
    assert!(here.queues().await.expect("queues").is_empty());
    enqueue(&there, [job("d")]).await;
    assert_eq!(here.queues().await.expect("queues"), [queue()]);
    assert_eq!(here.claim(&queue(), &worker(), 9, LEASE).await.expect("claim").jobs.len(), 1);
}
