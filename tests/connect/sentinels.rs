//! What is wrong with sentinels is told of the sentinel that it is wrong with.

use crate::support::{Sentinels, Server};
use sprag::{RedisStore, Store, StoreError};
use std::time::{Duration, Instant};

async fn error(url: &str) -> StoreError {
    let store = RedisStore::builder(url).repeat_budget(Duration::ZERO).build().expect("a store");
    store.queues().await.expect_err("it cannot work")
}

async fn refusal(url: &str) -> String {
    let asked = Instant::now();
    let StoreError::Backend(why) = error(url).await else { panic!("{:?}", error(url).await) };
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    why
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_refused_at_once() {
    let sentinels = Sentinels::start().await;
    let url = sentinels.url();
    let (at, _) = url.rsplit_once('/').expect("a name");
    let why = refusal(&format!("{at}/other")).await;
    assert!(why.contains(": knows no master \"other\" (the name is the URL's path"), "{why}");
    assert!(
        why.contains(&format!("sentinel 127.0.0.1:{}", sentinels.sentinels[0].port())),
        "{why}"
    );
}

#[tokio::test]
async fn a_server_in_a_sentinel_s_place_and_a_sentinel_in_a_server_s_are_told() {
    let sentinels = Sentinels::start().await;
    let (server, sentinel) = (sentinels.servers[0].port(), sentinels.sentinels[0].port());
    let why = refusal(&format!("redis+sentinel://127.0.0.1:{server}/mymaster")).await;
    assert!(why.contains("unknown command") && why.contains("(is it a sentinel?)"), "{why}");
    let why = refusal(&format!("redis://127.0.0.1:{sentinel}")).await;
    assert!(why.contains("this is a sentinel: use redis+sentinel://"), "{why}");
}

/// The user of the sentinels is not that of the servers: sprag's roles are not what he lacks.
#[tokio::test]
async fn what_a_sentinel_refuses_is_about_its_own_user() {
    let sentinels = Sentinels::start().await;
    for sentinel in &sentinels.sentinels {
        let mut user = redis::cmd("ACL");
        user.arg(&["SETUSER", "poor", "on", ">secret", "+ping", "+client"]);
        user.query_async::<()>(&mut sentinel.connection().await).await.expect("ACL SETUSER");
    }
    let with = |options: &str| format!("{}?{options}", sentinels.url());
    let why = refusal(&with("sentinel_user=poor&sentinel_pass=secret")).await;
    assert!(why.contains("sentinel 127.0.0.1:") && why.contains("NOPERM"), "{why}");
    assert!(why.contains("sentinel_user and sentinel_pass") && !why.contains("sprag acl"), "{why}");
    let why = refusal(&with("sentinel_user=poor&sentinel_pass=wrong")).await;
    assert!(why.contains("sentinel_user and sentinel_pass") && !why.contains("wrong"), "{why}");
}

/// docs/deployment.md names these rules.
#[tokio::test]
async fn the_rules_for_a_sentinel_s_user_are_enough_and_he_hears_of_a_switch() {
    let sentinels = Sentinels::start().await;
    let rules = ["+sentinel|get-master-addr-by-name", "+subscribe", "+ping", "&+switch-master"];
    for sentinel in &sentinels.sentinels {
        let mut user = redis::cmd("ACL");
        user.arg(&["SETUSER", "app", "on", ">secret"]).arg(&rules);
        user.query_async::<()>(&mut sentinel.connection().await).await.expect("ACL SETUSER");
    }
    let url = format!("{}?sentinel_user=app&sentinel_pass=secret", sentinels.url());
    let store = RedisStore::builder(url).build().expect("a store");
    assert_eq!(store.queues().await, Ok(Vec::new()));
    let sentinel = &sentinels.sentinels[0];
    let started = Instant::now();
    loop {
        let mut list = redis::cmd("CLIENT");
        list.arg(&["LIST", "TYPE", "pubsub"]);
        let list: String =
            list.query_async(&mut sentinel.connection().await).await.expect("CLIENT LIST");
        if list.lines().any(|line| line.contains(" user=app ") && line.contains(" sub=1 ")) {
            break;
        }
        assert!(started.elapsed() < crate::support::PATIENCE, "nobody listens");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// One of them that is of no use does not keep the others from being asked, and is not asked first again.
#[tokio::test]
async fn one_bad_sentinel_among_good_ones_is_passed_over() {
    let sentinels = Sentinels::start().await;
    let other = Server::start_tcp().await;
    let gone = {
        let server = Server::start_tcp().await;
        server.port()
    };
    let good = sentinels.sentinels[1].port();
    for bad in [other.port(), gone] {
        let url = format!("redis+sentinel://127.0.0.1:{bad},127.0.0.1:{good}/mymaster");
        let store = RedisStore::builder(url).repeat_budget(Duration::ZERO).build();
        assert_eq!(store.expect("a store").queues().await, Ok(Vec::new()));
    }
}
