//! Sentinels.

use crate::support::Sentinels;
use redis::AsyncCommands;

#[tokio::test]
async fn a_master_that_is_killed_is_replaced() {
    let mut all = Sentinels::start().await;
    assert_eq!(all.master().await, Some(0));
    let mut master = all.servers[0].connection().await;
    let _: () = master.set("key", "kept").await.expect("SET");
    let replicas: u64 =
        redis::cmd("WAIT").arg(1).arg(5_000).query_async(&mut master).await.expect("WAIT");
    assert_eq!(replicas, 1);
    assert_eq!(all.kill_master().await, 0);
    assert_eq!(all.replaced(0).await, 1);
    let kept: String = all.servers[1].connection().await.get("key").await.expect("GET");
    assert_eq!(kept, "kept");
}

#[tokio::test]
async fn a_replica_is_promoted_by_order() {
    let all = Sentinels::start().await;
    assert_eq!(all.fail_over().await, 1);
    assert_eq!(all.master().await, Some(1));
}

#[tokio::test]
async fn servers_and_sentinels_have_passwords_of_their_own() {
    let setup = Sentinels::setup().server_password("one").sentinel_password("other");
    let mut all = setup.start().await;
    let url = all.url();
    assert!(url.starts_with("redis+sentinel://:one@127.0.0.1:"), "{url}");
    assert!(url.ends_with("/mymaster?sentinel_pass=other"), "{url}");
    for server in all.servers.iter().chain(&all.sentinels) {
        let client = redis::Client::open(server.url()).expect("a url");
        let mut stranger = client.get_multiplexed_async_connection().await.expect("it accepts");
        let refused =
            redis::cmd("ROLE").query_async::<()>(&mut stranger).await.expect_err("a stranger");
        assert_eq!(refused.code(), Some("NOAUTH"));
    }
    let old = all.kill_master().await;
    assert_eq!(all.replaced(old).await, 1, "the sentinels have the passwords");
}
