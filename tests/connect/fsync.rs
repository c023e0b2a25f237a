//! An enqueue that waits for the server's disk.

use crate::{
    pair::run,
    support::{Make, Server},
    world::{backend, existing, hasty, is_there, ms, note, says},
};

/// Those that can tell what is on their disk.
fn makes() -> impl Iterator<Item = Make> {
    [Make::Redis8, Make::Valkey9].into_iter().filter_map(Make::if_here)
}

async fn server(make: Make, fsync: &str) -> Server {
    let args = ["--appendonly", "yes", "--appendfsync", fsync];
    Server::setup().make(make).args(args).start().await
}

#[tokio::test]
async fn what_is_on_the_disk_is_there_after_a_kill() {
    for make in makes() {
        for fsync in ["always", "everysec"] {
            let mut server = server(make, fsync).await;
            let client = hasty(&server.url());
            let enqueue = || client.enqueue(note(1)).id("a").fsync(ms(10_000));
            assert!(!existing(enqueue().await), "{make:?} {fsync}");
            assert!(existing(enqueue().await), "{make:?} {fsync}");
            server.kill();
            server.restart().await;
            assert!(is_there(&hasty(&server.url()), "a").await, "{make:?} {fsync}");
        }
    }
}

#[tokio::test]
async fn a_disk_that_is_not_written_to_is_told() {
    for make in makes() {
        let server = server(make, "no").await;
        let client = hasty(&server.url());
        // The system writes it when it likes: not within this.
        let answer = client.enqueue(note(1)).id("a").fsync(ms(50)).await;
        let text = crate::world::unavailable(answer);
        says(&text, &["job a ", "not on the server's disk", "50ms"]);
        assert!(is_there(&client, "a").await);
    }
}

#[tokio::test]
async fn a_server_that_cannot_tell_is_refused_before_anything_is_written() {
    let without_file = [Make::Redis8, Make::Valkey9].into_iter().filter_map(Make::if_here);
    // Redis 7.0 does not know the question.
    for make in without_file.chain([Make::Local]) {
        let server = Server::setup().make(make).start().await;
        let client = hasty(&server.url());
        let text = backend(client.enqueue(note(1)).id("a").fsync(ms(500)).await);
        says(&text, &["Redis 7.2 or Valkey 8", "appendonly yes"]);
        let keys: u64 = run(&server, &["DBSIZE"]).await;
        assert_eq!(keys, 0, "{make:?}");
        // Mended, it works without a new client.
        if make != Make::Local {
            run::<()>(&server, &["CONFIG", "SET", "appendonly", "yes"]).await;
            assert!(!existing(client.enqueue(note(1)).id("a").fsync(ms(10_000)).await));
        }
    }
}
