//! Every case with a user who has the rules of its role and no more: it passes, and nothing is
//! refused on the way. A user of another role is turned away before anything is written.

use crate::{
    case::Case,
    rig::{Rig, assert_same},
};
use redis::{Value, cmd};
use sprag::{Namespace, RedisStore, store::Role};
use std::time::Duration;

/// The role of who calls the script.
fn role_of(script: &str) -> Role {
    match script {
        "enqueue" => Role::Producer,
        "claim" | "complete" | "retry" | "archive" | "snooze" | "requeue" | "progress"
        | "extend" | "sweep" => Role::Worker,
        _ => Role::Operator,
    }
}

/// A store of a user who has the role's rules.
async fn as_role(rig: &Rig, role: Role) -> RedisStore {
    let mut user = cmd("ACL");
    user.arg("SETUSER").arg(role.as_str()).arg("reset").arg("on").arg("nopass");
    rig.run::<()>(user.arg(role.rules(&Namespace::default()))).await;
    let url = format!("{}?user={role}&pass=any", rig.server.url());
    let store = RedisStore::builder(url).virtual_clock().repeat_budget(Duration::ZERO);
    store.build().expect("store")
}

async fn refusals(rig: &Rig) -> Vec<Value> {
    rig.run(cmd("ACL").arg("LOG")).await
}

async fn pass_as(role: Role) {
    let rig = Rig::new().await;
    for case in Case::ALL.iter().filter(|case| role_of(case.script()) == role) {
        let world = case.prepare(&rig, &rig.direct()).await;
        let expected = case.call(&rig.direct(), &world).await;
        let world = case.prepare(&rig, &rig.direct()).await;
        let answer = case.call(&as_role(&rig, role).await, &world).await;
        assert!(!answer.contains("Backend("), "{case:?}: {answer}");
        let shape = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        assert_eq!(shape(&answer), shape(&expected), "{case:?}");
        assert_eq!(refusals(&rig).await, [], "{case:?}");
    }
}

#[tokio::test]
async fn a_producer_s_rules_are_enough_for_every_enqueue() {
    pass_as(Role::Producer).await;
}

#[tokio::test]
async fn a_worker_s_rules_are_enough_for_every_claim_settlement_and_sweep() {
    pass_as(Role::Worker).await;
}

#[tokio::test]
async fn an_operator_s_rules_are_enough_for_every_steering_call() {
    pass_as(Role::Operator).await;
}

#[tokio::test]
async fn another_role_is_turned_away_before_anything_is_written() {
    let rig = Rig::new().await;
    for case in Case::ALL {
        let world = case.prepare(&rig, &rig.direct()).await;
        let before = rig.dump().await;
        // A worker and an operator may all that a producer sends: Redis knows commands, not scripts.
        let others = match role_of(case.script()) {
            Role::Producer => continue,
            _ if case.script() == "watch_ends" => continue,
            Role::Worker => [Role::Producer, Role::Operator],
            Role::Operator => [Role::Producer, Role::Worker],
        };
        for role in others {
            let answer = case.call(&as_role(&rig, role).await, &world).await;
            let said = format!("user {role} may not run ");
            assert!(answer.contains("Backend(") && answer.contains(&said), "{case:?}: {answer}");
            assert_same(&before, &rig.dump().await, &format!("{case:?} as {role}"));
        }
        assert_eq!(refusals(&rig).await, [], "asked, not tried");
    }
}
