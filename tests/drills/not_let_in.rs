//! Servers that let nobody in for a while, while everybody works.

use crate::{
    shift::{Shift, client},
    support::Server,
    tries::Doors,
};
use sprag::{RedisStore, Store, StoreError};
use std::time::{Duration, Instant};

const SECRET: &str = "the-right-one";

fn url(server: &Server, password: &str) -> String {
    format!("redis://:{password}@127.0.0.1:{}", server.port())
}

async fn config(server: &Server, name: &str, value: &str) {
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg(name).arg(value);
    set.query_async::<()>(&mut server.connection().await).await.expect("CONFIG SET");
}

/// CASES 22's sibling: at most a dozen tries in ten seconds, by each of the two clients.
#[tokio::test]
async fn a_wrong_password_is_seldom_tried_and_works_when_it_is_right() {
    let server = Server::setup().tcp().password(SECRET).start().await;
    let doors = Doors::of([&server]).await;
    let wrong = url(&server, "the-next-one");
    let shift = Shift::begin(client(&wrong), client(&wrong), &["default"]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (tries, lines) = (doors.passed().await, shift.lines.take());
    let mut more = redis::cmd("ACL");
    more.arg(&["SETUSER", "default", ">the-next-one"]);
    more.query_async::<()>(&mut server.connection().await).await.expect("ACL SETUSER");
    let right = Instant::now();
    let (acked, ran) = shift.flows_after(right).await;
    eprintln!(
        "wrong password: tries {tries} in 10 s, lines {}; then first ack {acked:?}, first run {ran:?}",
        lines.len()
    );
    assert!(tries <= 24, "{tries} tries: {lines:#?}");
    // The connection's, every three seconds by each client, and the worker's.
    assert!(lines.len() <= 18, "{}: {lines:#?}", lines.len());
    assert!(lines.iter().all(|line| !line.contains("the-next-one")), "{lines:#?}");
    // The longest back-off of a refused connection, and for the run that of the worker.
    assert!(acked < Duration::from_secs(6) && ran < Duration::from_secs(7), "{acked:?} {ran:?}");
    let refusals = shift.refusals();
    let backend = |error: &StoreError| matches!(error, StoreError::Backend(_));
    assert!(!refusals.is_empty() && refusals.iter().all(backend), "{refusals:?}");
    assert_eq!(shift.ended_well(&server).await, 0);
}

/// With a password, the refusal comes as the answer to it: it is not the password that is wrong.
#[tokio::test]
async fn a_server_that_is_full_is_unavailable_whether_it_has_a_password_or_not() {
    let server = Server::setup().tcp().password(SECRET).start().await;
    let open = Server::start_tcp().await;
    for (server, url) in [(&server, url(&server, SECRET)), (&open, open.url())] {
        let _own = server.connection().await;
        config(server, "maxclients", "1").await;
        for _ in 0..5 {
            let store = RedisStore::builder(&url).repeat_budget(Duration::ZERO).build();
            let error = store.expect("store").queues().await.expect_err("full");
            let StoreError::Unavailable(why) = &error else { panic!("{error:?}") };
            assert!(why.contains("maxclients") && !why.contains(SECRET), "{why}");
        }
    }
}

#[tokio::test]
async fn a_server_that_was_full_for_a_while_costs_no_job() {
    let server = Server::setup().tcp().password(SECRET).start().await;
    let shift = Shift::start(&url(&server, SECRET)).await;
    let mut own = server.connection().await;
    let doors = Doors::of([&server]).await;
    let mut run = redis::pipe();
    run.cmd("CONFIG").arg(&["SET", "maxclients", "2"]);
    run.cmd("CLIENT").arg(&["KILL", "TYPE", "pubsub"]);
    run.cmd("CLIENT").arg(&["KILL", "TYPE", "normal", "LADDR", &laddr(&server)]);
    run.query_async::<()>(&mut own).await.expect("full");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (tries, lines) = (doors.passed().await, shift.lines.take());
    let mut room = redis::cmd("CONFIG");
    room.arg(&["SET", "maxclients", "100"]);
    room.query_async::<()>(&mut own).await.expect("room");
    let back = Instant::now();
    let (acked, ran) = shift.flows_after(back).await;
    eprintln!(
        "maxclients: tries {tries} in 5 s, lines {}; then first ack {acked:?}, first run {ran:?}",
        lines.len()
    );
    assert!(tries <= 30 && lines.len() <= 10, "{tries}: {lines:#?}");
    assert!(acked < Duration::from_secs(4) && ran < Duration::from_secs(5), "{acked:?} {ran:?}");
    assert_eq!(shift.ends_well(&server).await, 0);
}

/// Those who came by TCP; the test comes by the socket.
fn laddr(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}
