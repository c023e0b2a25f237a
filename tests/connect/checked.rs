//! What is looked at when a connection is made.

use crate::{
    logs::Logs,
    pair::run,
    support::{Proxy, Server, resp},
    world::{backend, hasty, ms, note, patient, says},
};
use sprag::{Client, RedisStore, State};
use tokio::io::AsyncWriteExt;

async fn evicting() -> Server {
    Server::tcp_with_args(&["--maxmemory-policy", "allkeys-lru"]).await
}

/// A shared connection, and one of the pool.
async fn use_both(client: &Client) {
    client.enqueue(note(1)).await.expect("admitted");
    let mut jobs = client.inspector().jobs("default", State::Pending).expect("a queue");
    jobs.next_page().await.expect("a page");
}

#[tokio::test]
async fn a_server_that_deletes_queues_is_refused_and_the_danger_named() {
    let server = evicting().await;
    for budget in [0, 30_000] {
        let client = patient(&server.url(), ms(budget));
        let text = backend(client.enqueue(note(1)).await);
        let words = ["allkeys-lru", "deletes whole queues", "noeviction", "allow_eviction"];
        says(&text, &words);
        says(&backend(client.ready(ms(30_000)).await), &words);
    }
    assert_eq!(run::<u64>(&server, &["DBSIZE"]).await, 0);
    // Only keys with a time to live are evicted: nothing of a queue has one that it needs.
    run::<()>(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    use_both(&hasty(&server.url())).await;
}

#[tokio::test]
async fn who_allows_eviction_is_warned_once() {
    let server = evicting().await;
    let url = server.url();
    let by_builder = RedisStore::builder(&url).allow_eviction().build().expect("a store");
    for client in [Client::new(by_builder), hasty(&format!("{url}?allow_eviction=yes"))] {
        let logs = Logs::listen();
        for _ in 0..3 {
            use_both(&client).await;
        }
        assert_eq!(logs.warnings("allow_eviction is set"), 1, "{}", logs.all());
    }
}

#[tokio::test]
async fn a_change_is_noticed_at_the_next_connection() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let client = patient(&proxy.url(), ms(5_000));
    client.enqueue(note(1)).await.expect("admitted");
    run::<()>(&server, &["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]).await;
    proxy.cut_all();
    says(&backend(client.enqueue(note(2)).await), &["allkeys-random"]);
    // Mended, it works again, without a new client.
    run::<()>(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    client.ready(ms(100)).await.map_or_else(drop, drop);
    crate::pair::until("it is used again", async || client.enqueue(note(3)).await.is_ok()).await;
}

#[cfg(feature = "cluster")]
#[tokio::test]
async fn a_wrong_scheme_is_told_the_right_one() {
    let node = Server::tcp_with_args(&["--cluster-enabled", "yes"]).await;
    let text = backend(hasty(&node.url()).enqueue(note(1)).await);
    says(&text, &["node of a cluster", "redis+cluster://"]);
    let plain = Server::start_tcp().await;
    let url = plain.url().replace("redis://", "redis+cluster://");
    let text = backend(hasty(&url).enqueue(note(1)).await);
    says(&text, &["redis://"]);
    says(&backend(hasty(&url).ready(ms(5_000)).await), &["redis://"]);
}

#[tokio::test]
async fn a_server_without_a_file_is_warned_of_once() {
    let server = Server::start_tcp().await;
    let proxy = Proxy::in_front_of(&server).await;
    let logs = Logs::listen();
    let client = patient(&proxy.url(), ms(10_000));
    for _ in 0..3 {
        use_both(&client).await;
        proxy.cut_all();
    }
    use_both(&client).await;
    assert!(proxy.accepted() >= 5, "{}", proxy.accepted());
    assert_eq!(logs.warnings("no append-only file"), 1, "{}", logs.all());
    let server = Server::tcp_with_args(&["--appendonly", "yes"]).await;
    let logs = Logs::listen();
    use_both(&hasty(&server.url())).await;
    assert_eq!(logs.warnings(""), 0, "{}", logs.all());
}

#[tokio::test]
async fn who_may_not_ask_is_told_what_is_not_known_and_works() {
    let rules = ["on", ">secret", "~*", "&*", "+@all", "-info"];
    let server = Server::setup().tcp().user("peter", rules).start().await;
    let logs = Logs::listen();
    let client = hasty(&format!("redis://peter:secret@127.0.0.1:{}", server.port()));
    use_both(&client).await;
    use_both(&client).await;
    let words = "could not verify its version, its eviction policy, whether it is a node";
    assert_eq!(logs.warnings(words), 1, "{}", logs.all());
    client.ready(ms(0)).await.expect("it works");
}

/// Says of itself what it is told to say, and OK to all else.
async fn stub(info: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (read, mut write) = tokio::io::split(socket);
                let mut frames = resp::Frames::new(read);
                while let Ok(Some(request)) = frames.next().await {
                    let asked = String::from_utf8_lossy(&request).to_ascii_lowercase();
                    let answer = match asked.contains("\r\ninfo\r\n") {
                        true => format!("${}\r\n{info}\r\n", info.len()),
                        false => "+OK\r\n".to_owned(),
                    };
                    if write.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("redis://{address}")
}

#[tokio::test]
async fn an_old_server_is_refused_at_once_with_what_to_do() {
    for (info, version) in [
        ("redis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\n", "Redis 6.2.14"),
        ("redis_version:7.2.4\r\nvalkey_version:7.2.5\r\n", "Valkey 7.2.5"),
    ] {
        let url = stub(info).await;
        let client = patient(&url, ms(30_000));
        let started = std::time::Instant::now();
        let words = [version, "too old", "Redis 7.0 or Valkey 8", "upgrade"];
        says(&backend(client.ready(ms(30_000)).await), &words);
        says(&backend(client.enqueue(note(1)).await), &words);
        assert!(started.elapsed() < ms(5_000), "{:?}", started.elapsed());
    }
}
