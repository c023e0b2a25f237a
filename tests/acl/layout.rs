//! `sprag:schema`: a layout of a newer version is left alone.

use crate::user::{World, job, queue};
use sprag::{Store, StoreError, store::Role};

const KEY: &str = "sprag:schema";

async fn refused(world: &World) -> String {
    let store = world.as_roles(&[Role::Producer]).await;
    let (before, answer) = (world.keys().await, store.enqueue(&queue(), &[job()]).await);
    assert_eq!(world.keys().await, before, "nothing is written");
    let Err(StoreError::Backend(why)) = answer else { panic!("{answer:?}") };
    why
}

#[tokio::test]
async fn a_newer_layout_is_refused_and_nothing_is_written() {
    let world = World::new().await;
    world.run::<()>(&["SET", KEY, "2"]).await;
    let why = refused(&world).await;
    assert!(why.contains("sprag:schema is 2") && why.contains("upgrade this program"), "{why}");
}

#[tokio::test]
async fn an_unreadable_layout_is_refused_and_nothing_is_written() {
    let world = World::new().await;
    for (command, rest) in [("SET", "x"), ("SET", ""), ("SET", "-1"), ("LPUSH", "1")] {
        world.run::<()>(&["FLUSHALL"]).await;
        world.run::<redis::Value>(&[command, KEY, rest]).await;
        let why = refused(&world).await;
        assert!(why.contains(KEY), "{command} {rest:?}: {why}");
    }
}

#[tokio::test]
async fn who_makes_a_queue_says_how_it_is_laid_out() {
    let world = World::new().await;
    let store = world.as_roles(&[Role::Producer]).await;
    store.enqueue(&queue(), &[job()]).await.expect("there is none: the oldest");
    assert_eq!(world.run::<String>(&["GET", KEY]).await, "1");
    // A queue that is there already says nothing.
    world.run::<()>(&["DEL", KEY]).await;
    store.enqueue(&queue(), &[job()]).await.expect("enqueue");
    assert!(!world.run::<bool>(&["EXISTS", KEY]).await);
}

#[tokio::test]
async fn the_layout_is_read_anew_with_each_connection() {
    let world = World::new().await;
    let store = world.as_roles(&[Role::Producer]).await;
    store.enqueue(&queue(), &[job()]).await.expect("enqueue");
    world.run::<()>(&["SET", KEY, "7"]).await;
    world.run::<u64>(&["CLIENT", "KILL", "USER", "u"]).await;
    let answer = store.enqueue(&queue(), &[job()]).await;
    assert!(matches!(answer, Err(StoreError::Backend(why)) if why.contains("is 7")));
}
