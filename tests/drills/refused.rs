//! The server is there, and does not let us in.

use crate::{
    shift::{Shift, told},
    support::Server,
    tries::Doors,
};
use sprag::{Client, RedisStore, StoreError};
use std::time::{Duration, Instant};

async fn set(server: &Server, name: &str, value: &str) {
    let mut connection = server.connection().await;
    let set = redis::cmd("CONFIG").arg("SET").arg(name).arg(value).to_owned();
    set.query_async::<()>(&mut connection).await.expect("CONFIG SET");
}

/// Asked again and again: by many callers, for ten seconds.
#[tokio::test]
async fn a_wrong_password_is_backend_at_once_and_not_hammered() {
    let server = Server::setup().tcp().password("right").start().await;
    let doors = Doors::of([&server]).await;
    let url = format!("redis://:wr0ng@127.0.0.1:{}", server.port());
    let client = Client::new(RedisStore::builder(url).build().expect("a store"));
    let (until, mut asked) = (Instant::now() + Duration::from_secs(10), 0);
    while Instant::now() < until {
        let first = Instant::now();
        let answer = client.store().queues().await;
        let Err(StoreError::Backend(text)) = answer else { panic!("{answer:?}") };
        assert!(text.contains("check user and password") && !text.contains("wr0ng"), "{text}");
        assert!(first.elapsed() < Duration::from_secs(2), "not repeated");
        asked += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let tries = doors.passed().await;
    assert!(asked > 100 && (3..=12).contains(&tries), "{tries} tries for {asked} calls in 10 s");
}

#[tokio::test]
async fn a_server_without_room_is_unavailable_until_there_is_room_again() {
    let server = Server::start_tcp().await;
    let shift = Shift::start(&server.url()).await;
    let mut guest = server.connection().await;
    set(&server, "maxclients", "1").await;
    let kill = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").to_owned();
    kill.query_async::<()>(&mut guest).await.expect("CLIENT KILL");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let lines = shift.lines.take();
    assert!(lines.iter().any(|line| line.contains("maxclients")), "{lines:#?}");
    assert!(lines.len() <= 10, "{lines:#?}");
    let make_room = redis::cmd("CONFIG").arg("SET").arg("maxclients").arg("100").to_owned();
    make_room.query_async::<()>(&mut guest).await.expect("CONFIG SET");
    let flows = shift.flows_after(Instant::now()).await;
    told("maxclients for 3 s", flows, 0, lines.len());
    assert!(flows.0 < Duration::from_secs(4) && flows.1 < Duration::from_secs(5), "{flows:?}");
    shift.ends_well(&server).await;
}
