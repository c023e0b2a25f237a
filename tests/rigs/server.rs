//! Single servers.

use crate::support::{Make, Server};
use redis::AsyncCommands;

#[tokio::test]
async fn a_user_may_do_what_the_list_says() {
    let rules = ["on", ">secret", "~a:*", "+get"];
    let server = Server::setup().tcp().user("reader", rules).password("all").start().await;
    let _: () = server.connection().await.set("a:key", "seen").await.expect("the test's own user");
    let url = format!("redis://reader:secret@127.0.0.1:{}", server.port());
    let client = redis::Client::open(url).expect("a url");
    let mut reader = client.get_multiplexed_async_connection().await.expect("it gets in");
    assert_eq!(reader.get("a:key").await, Ok("seen".to_owned()));
    for refused in [reader.get::<_, ()>("b:key").await, reader.set("a:key", "").await] {
        assert_eq!(refused.expect_err("no permission").code(), Some("NOPERM"));
    }
}

#[tokio::test]
async fn other_makes_are_what_they_say() {
    for (make, name, version) in
        [(Make::Redis8, "redis_version", "8.2."), (Make::Valkey9, "valkey_version", "9.")]
    {
        let Some(make) = make.if_here() else { continue };
        let server = Server::setup().make(make).start().await;
        let info: redis::InfoDict =
            redis::cmd("INFO").query_async(&mut server.connection().await).await.expect("INFO");
        let says: String = info.get(name).expect("a version");
        assert!(says.starts_with(version), "{name} {says}");
    }
}
