//! TLS: who is trusted, and what is said when somebody is not.

use crate::{
    logs::Logs,
    support::{PATIENCE, Pair, TlsServer},
    world::{Note, backend, hasty, invalid, ms, note, patient, says},
};
use sprag::{Client, RedisStore, Worker};
use std::{path::Path, time::Instant};

/// Refused for its TLS, at once, whatever the budget.
async fn refused(url: &str) -> String {
    let started = Instant::now();
    let text = backend(patient(url, ms(60_000)).enqueue(note(1)).await);
    assert!(started.elapsed() < ms(5_000), "{:?}", started.elapsed());
    says(&text, &["TLS", "ca=", "cert=", "key="]);
    says(&backend(hasty(url).ready(ms(30_000)).await), &["TLS"]);
    text
}

#[tokio::test]
async fn its_own_authority_is_trusted_and_no_other() {
    let tls = TlsServer::start().await;
    hasty(&tls.url()).enqueue(note(1)).await.expect("admitted");
    let all = &tls.certificates;
    refused(&tls.url_of("localhost", Some(&all.other_ca), None)).await;
    // The system's: they know nothing of this one.
    refused(&tls.url_of("localhost", None, None)).await;
}

#[tokio::test]
async fn a_certificate_for_another_host_or_another_time_is_refused() {
    let tls = TlsServer::setup().shows(|all| &all.elsewhere).start().await;
    refused(&tls.url()).await;
    let tls = TlsServer::setup().shows(|all| &all.expired).start().await;
    says(&refused(&tls.url()).await.to_lowercase(), &["expired"]);
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_one() {
    let tls = TlsServer::setup().asks_clients().start().await;
    hasty(&tls.url()).enqueue(note(1)).await.expect("admitted");
    let all = &tls.certificates;
    for client in [None, Some(&all.stranger)] {
        refused(&tls.url_of("localhost", Some(&all.ca), client)).await;
    }
}

#[tokio::test]
async fn a_password_goes_by_tls() {
    let tls = TlsServer::setup().with(|setup| setup.password("s3cret")).start().await;
    let with = |password: &str| tls.url().replace("rediss://", &format!("rediss://:{password}@"));
    hasty(&with("s3cret")).enqueue(note(1)).await.expect("admitted");
    says(&backend(hasty(&with("wrong")).enqueue(note(1)).await), &["password"]);
    says(&backend(hasty(&tls.url()).enqueue(note(1)).await), &["password"]);
}

#[tokio::test]
async fn plain_and_tls_are_not_mistaken_for_each_other() {
    let tls = TlsServer::start().await;
    let plain = tls.url().replace("rediss://", "redis://");
    let plain = plain.split('?').next().expect("a part");
    let started = Instant::now();
    hasty(plain).enqueue(note(1)).await.expect_err("no TLS");
    let server = crate::support::Server::start_tcp().await;
    let url = format!("rediss://127.0.0.1:{}?ca={}", server.port(), tls.certificates.ca.display());
    hasty(&url).enqueue(note(1)).await.expect_err("TLS");
    assert!(started.elapsed() < ms(12_000), "{:?}", started.elapsed());
}

#[test]
fn a_file_that_is_none_is_told_when_the_store_is_made() {
    let all = crate::support::Certificates::new();
    let build = |url: &str| RedisStore::builder(url).build();
    let Pair { cert, key } = &all.client;
    let shown = |path: &Path| path.display().to_string();
    let url = |ca: &str, cert: &str, key: &str| {
        format!("rediss://localhost?ca={ca}&cert={cert}&key={key}")
    };
    let (ca, cert, key) = (shown(&all.ca), shown(cert), shown(key));
    let other = shown(&all.stranger.key);
    build(&url(&ca, &cert, &key)).expect("good files");
    for (url, words) in [
        (url("/no/ca", &cert, &key), ["url ca", "/no/ca", "No such file"]),
        (url(&ca, "/no/cert", &key), ["url cert", "/no/cert", "No such file"]),
        (url(&ca, &cert, "/no/key"), ["url key", "/no/key", "No such file"]),
        (url(&key, &cert, &key), ["url ca", &key, "no certificate in PEM"]),
        (url(&ca, &key, &key), ["url cert", &key, "no certificate in PEM"]),
        (url(&ca, &cert, &cert), ["url key", &cert, "no private key in PEM"]),
        (url(&ca, &cert, &other), [&*format!("url key: {other}"), &*format!("cert={cert}"), "fit"]),
        (format!("rediss://localhost?cert={cert}"), ["url cert", "key", "both"]),
    ] {
        says(&invalid(build(&url).map(drop)), &words);
    }
}

/// Subscriptions, blocked waits, the pool: each a connection of its own.
#[tokio::test]
async fn a_jobs_whole_life_goes_by_tls() {
    let tls = TlsServer::setup().asks_clients().start().await;
    let logs = Logs::listen();
    let client: Client = patient(&tls.url(), ms(5_000));
    let handler = async |job: Note| Ok::<_, std::convert::Infallible>(job.number * 2);
    let worker = Worker::builder(&client).handler(handler).build().expect("a worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run());
    let queue = sprag::QueueName::new("default").expect("a queue");
    for number in 0..5 {
        let id = client.enqueue(note(number)).retention(ms(60_000)).await.expect("admitted").id;
        let told = tokio::time::timeout(PATIENCE, client.wait::<u32>(&queue, &id)).await;
        told.expect("in time").expect("it ends well");
    }
    let mut jobs = client.inspector().jobs("default", sprag::State::Completed).expect("a queue");
    assert_eq!(jobs.next_page().await.expect("a page").map(|page| page.len()), Some(5));
    shutdown.drain();
    assert_eq!(worker.await.expect("no panic").completed, 5);
    assert_eq!(logs.warnings("TLS"), 0, "{}", logs.all());
}
