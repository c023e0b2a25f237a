//! When it is asked what a user may: once per connection and role.

use crate::user::{LEASE, World, job, queue, rules, worker};
use sprag::{
    Store, StoreError,
    store::{Role, Setting},
};

#[tokio::test]
async fn it_is_asked_once_per_connection_and_role() {
    let world = World::new().await;
    let store = world.as_roles(&Role::ALL).await;
    store.enqueue(&queue(), &[job()]).await.expect("enqueue");
    store.claim(&queue(), &worker(), 1, LEASE).await.expect("claim");
    store.set(&queue(), &[Setting::Limit(None)]).await.expect("set");
    world.run::<()>(&["CONFIG", "RESETSTAT"]).await;
    for _ in 0..10 {
        store.enqueue(&queue(), &[job()]).await.expect("enqueue");
        store.claim(&queue(), &worker(), 1, LEASE).await.expect("claim");
        store.set(&queue(), &[Setting::Limit(None)]).await.expect("set");
    }
    let (scripts, gets) = (world.ran("evalsha").await, world.ran("get").await);
    // Some ask for their full set of keys once.
    assert!((30..=32).contains(&scripts) && gets == 0, "{scripts} scripts, {gets} GET");
}

#[tokio::test]
async fn calls_that_come_together_all_pass() {
    let world = World::new().await;
    let store = world.as_roles(&[Role::Producer]).await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.enqueue(&queue(), &[job()]).await })
        })
        .collect();
    for call in calls {
        assert!(call.await.expect("no panic").is_ok());
    }
    assert_eq!(world.refusals().await, []);
}

#[tokio::test]
async fn rights_that_were_taken_away_are_noticed_with_the_next_connection() {
    let world = World::new().await;
    let store = world.as_roles(&[Role::Producer]).await;
    store.enqueue(&queue(), &[job()]).await.expect("enqueue");
    world.run::<()>(&["ACL", "SETUSER", "u", "-hincrby"]).await;
    world.run::<u64>(&["CLIENT", "KILL", "USER", "u"]).await;
    world.run::<()>(&["FLUSHALL"]).await;
    let answer = store.enqueue(&queue(), &[job()]).await;
    let Err(StoreError::Backend(why)) = answer else { panic!("{answer:?}") };
    assert!(why.contains("user u may not run HINCRBY, as a producer must"), "{why}");
    assert_eq!(world.keys().await, 0);
    // Given back, they are noticed without a new connection: a refusal is not kept.
    world.user("u", &rules(Role::Producer)).await;
    store.enqueue(&queue(), &[job()]).await.expect("enqueue");
}
