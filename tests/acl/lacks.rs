//! One command is taken away from a role, whichever: the first call names it, and nothing is there.

use crate::user::{LEASE, PASSWORD, World, job, queue, rules, worker};
use sprag::{
    RedisStore, Store, StoreError,
    store::{Role, Setting},
};
use std::time::Duration;

/// What a role can do without: the whole feature is refused, or something is told later.
const OPTIONAL: [&str; 13] = [
    "acl|whoami",
    "asking",
    "cluster|slots",
    "config|get",
    "info",
    "ping",
    "publish",
    "role",
    "scan",
    "select",
    "slowlog|get",
    "subscribe",
    "wait",
];

async fn first_call(store: &RedisStore, role: Role) -> Result<(), StoreError> {
    match role {
        Role::Producer => store.enqueue(&queue(), &[job()]).await.map(drop),
        Role::Worker => store.claim(&queue(), &worker(), 1, LEASE).await.map(drop),
        Role::Operator => store.set(&queue(), &[Setting::Limit(Some(1))]).await,
    }
}

async fn each_one_taken_away(role: Role) {
    let world = World::new().await;
    let (rules, mut needed) = (rules(role), 0);
    // The scripts are there: what is told is not that they could not be loaded.
    first_call(&world.as_roles(&[role]).await, role).await.expect("all is there");
    for command in rules.iter().filter_map(|rule| rule.strip_prefix('+')) {
        world.run::<()>(&["FLUSHALL"]).await;
        world.user("u", &[&rules[..], &[format!("-{command}")]].concat()).await;
        let answer = first_call(&world.store("u", Duration::ZERO), role).await;
        if OPTIONAL.contains(&command) {
            assert_eq!(answer, Ok(()), "{role} without {command}");
            continue;
        }
        needed += 1;
        let Err(StoreError::Backend(why)) = answer else {
            panic!("{role} without {command}: {answer:?}")
        };
        let name = command.replace('|', " ");
        let named = why.to_lowercase().contains(&name) || why.contains(&format!("'{command}'"));
        assert!(named && why.contains("user u"), "{role} without {command}: {why}");
        assert!(why.contains(&format!("sprag acl {role}")), "{why}");
        assert!(!why.contains(PASSWORD), "{why}");
        assert_eq!(world.keys().await, 0, "{role} without {command}");
    }
    assert!(needed > 15, "{needed} commands");
}

#[tokio::test]
async fn a_producer_who_lacks_a_command_is_told_which_and_writes_nothing() {
    each_one_taken_away(Role::Producer).await;
}

#[tokio::test]
async fn a_worker_who_lacks_a_command_is_told_which_and_writes_nothing() {
    each_one_taken_away(Role::Worker).await;
}

#[tokio::test]
async fn an_operator_who_lacks_a_command_is_told_which_and_writes_nothing() {
    each_one_taken_away(Role::Operator).await;
}

#[tokio::test]
async fn who_may_not_touch_the_keys_is_told_for_whom_and_what_for() {
    let world = World::new().await;
    let elsewhere = Role::Producer.rules(&sprag::Namespace::new("other").expect("namespace"));
    world.user("u", &elsewhere).await;
    let answer = first_call(&world.store("u", Duration::ZERO), Role::Producer).await;
    let Err(StoreError::Backend(why)) = answer else { panic!("{answer:?}") };
    assert!(why.contains("NOPERM") && why.contains("user u, a producer"), "{why}");
    assert_eq!(world.keys().await, 0);
}

#[tokio::test]
async fn several_are_named_together() {
    let world = World::new().await;
    let less = ["-zadd", "-sadd", "-script"].map(str::to_owned);
    first_call(&world.as_roles(&[Role::Producer]).await, Role::Producer).await.expect("enqueue");
    world.user("u", &[rules(Role::Producer), less.to_vec()].concat()).await;
    let answer = first_call(&world.store("u", Duration::ZERO), Role::Producer).await;
    let Err(StoreError::Backend(why)) = answer else { panic!("{answer:?}") };
    assert!(why.contains("may not run SADD, SCRIPT LOAD, ZADD, as a producer must"), "{why}");
}
