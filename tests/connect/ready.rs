//! Whether the store can be reached: asked, and waited for.

use crate::{
    pair::run,
    support::Server,
    world::{Note, backend, hasty, ms, note, patient, says, unavailable},
};
use sprag::Worker;
use std::time::Instant;

#[tokio::test]
async fn an_absent_server_is_told_in_time() {
    let mut server = Server::start_tcp().await;
    server.kill();
    let client = patient(&server.url(), ms(60_000));
    let started = Instant::now();
    says(&unavailable(client.ready(ms(0)).await), &[&server.port().to_string()]);
    assert!(started.elapsed() < ms(1_000), "{:?}", started.elapsed());
    let started = Instant::now();
    unavailable(client.ready(ms(1_000)).await);
    let took = started.elapsed();
    assert!((ms(300)..ms(2_000)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_server_that_comes_later_is_waited_for() {
    let mut server = Server::start_tcp().await;
    server.kill();
    let client = hasty(&server.url());
    let waits = client.clone();
    let waits = tokio::spawn(async move { waits.ready(std::time::Duration::MAX).await });
    unavailable(client.ready(ms(500)).await);
    assert!(!waits.is_finished());
    server.restart().await;
    waits.await.expect("no panic").expect("it is there");
    client.enqueue(note(1)).await.expect("admitted");
}

#[tokio::test]
async fn a_black_hole_is_told_in_time() {
    // Takes connections, by the system's hand, and never says a word.
    let hole = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", hole.local_addr().expect("an address"));
    for (within, at_most) in [(ms(0), ms(6_000)), (ms(100), ms(1_900)), (ms(1_500), ms(3_500))] {
        let started = Instant::now();
        unavailable(hasty(&url).ready(within).await);
        assert!(started.elapsed() < at_most, "{within:?}: {:?}", started.elapsed());
    }
    // A server that stops answering after it did.
    let server = Server::start_tcp().await;
    let client = hasty(&server.url());
    client.ready(ms(0)).await.expect("it is there");
    server.pause();
    let started = Instant::now();
    unavailable(client.ready(ms(500)).await);
    assert!(started.elapsed() < ms(2_500), "{:?}", started.elapsed());
    server.resume();
    client.ready(ms(10_000)).await.expect("it is back");
}

#[tokio::test]
async fn a_wrong_password_is_told_at_once() {
    let server = Server::setup().tcp().password("right").start().await;
    let port = server.port();
    for url in [format!("redis://:wrong@127.0.0.1:{port}"), format!("redis://127.0.0.1:{port}")] {
        let started = Instant::now();
        let text = backend(patient(&url, ms(30_000)).ready(ms(30_000)).await);
        says(&text, &["password"]);
        assert!(!text.contains("wrong@") && started.elapsed() < ms(3_000), "{text}");
    }
    hasty(&format!("redis://:right@127.0.0.1:{port}")).ready(ms(0)).await.expect("it is right");
    let other = Server::start_tcp().await;
    let url = format!("redis://:s3cret@127.0.0.1:{}", other.port());
    let text = backend(hasty(&url).ready(ms(30_000)).await);
    assert!(text.contains("password") && !text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_not_ready() {
    let server = Server::start_tcp().await;
    let proxy = crate::support::Proxy::in_front_of(&server).await;
    proxy.on("info").times(3).answer_error("LOADING Redis is loading the dataset in memory");
    let client = hasty(&proxy.url());
    says(&unavailable(client.ready(ms(0)).await), &["LOADING"]);
    client.ready(ms(15_000)).await.expect("loaded");
}

#[cfg(feature = "cluster")]
#[tokio::test]
async fn a_cluster_is_ready_when_all_its_masters_are() {
    let mut cluster = crate::support::Cluster::start(3, 0).await;
    let client = hasty(&cluster.url());
    client.ready(ms(10_000)).await.expect("all are there");
    cluster.kill(1);
    unavailable(client.ready(ms(0)).await);
    unavailable(client.ready(ms(1_000)).await);
    cluster.restart(1).await;
    client.ready(ms(20_000)).await.expect("all are back");
}

#[tokio::test]
async fn a_start_without_redis_is_repeated_as_configured() {
    let mut server = Server::start_tcp().await;
    server.kill();
    let started = Instant::now();
    unavailable(hasty(&server.url()).enqueue(note(1)).await);
    assert!(started.elapsed() < ms(5_000), "{:?}", started.elapsed());
    let client = patient(&server.url(), ms(20_000));
    let enqueue = tokio::spawn(async move { client.enqueue(note(1)).id("a").await });
    unavailable(hasty(&server.url()).ready(ms(700)).await);
    assert!(!enqueue.is_finished());
    server.restart().await;
    assert!(!enqueue.await.expect("no panic").expect("it came").existing);
}

#[tokio::test]
async fn a_worker_started_without_redis_works_when_it_comes() {
    let mut server = Server::start_tcp().await;
    server.kill();
    let client = patient(&server.url(), ms(1_000));
    let (done, mut told) = tokio::sync::mpsc::channel(1);
    let handler = move |job: Note| {
        let done = done.clone();
        async move { done.send(job.number).await }
    };
    let worker = Worker::builder(&client).handler(handler).build().expect("a worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run());
    unavailable(client.ready(ms(1_500)).await);
    assert!(!worker.is_finished());
    server.restart().await;
    client.ready(ms(10_000)).await.expect("it came");
    client.enqueue(note(7)).await.expect("admitted");
    let told = tokio::time::timeout(crate::support::PATIENCE, told.recv()).await;
    assert_eq!(told.expect("in time"), Some(7));
    shutdown.drain();
    worker.await.expect("no panic");
    assert_eq!(run::<u64>(&server, &["HLEN", "sprag:{default}:jobs"]).await, 0);
}
