//! A server with TLS.

use crate::support::{Pair, TlsServer};
use redis::{ClientTlsConfig, TlsCertificates};
use std::path::Path;

/// What a client gets that trusts this authority and shows that certificate.
async fn ping(
    server: &TlsServer,
    host: &str,
    ca: &Path,
    client: Option<&Pair>,
) -> Result<(), String> {
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let certificates = TlsCertificates {
        client_tls: client.map(|pair| ClientTlsConfig {
            client_cert: read(&pair.cert),
            client_key: read(&pair.key),
        }),
        root_cert: Some(read(ca)),
    };
    let url = server.url_of(host, None, None);
    let client = redis::Client::build_with_tls(url, certificates).expect("a client");
    let ping = async {
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd("PING").query_async::<()>(&mut connection).await
    };
    ping.await.map_err(|error| error.to_string())
}

fn says(answer: Result<(), String>, word: &str) {
    let error = answer.expect_err("it is refused");
    assert!(error.contains(word), "{error}");
}

#[tokio::test]
async fn a_client_trusts_its_own_authority_alone() {
    let server = TlsServer::start().await;
    let all = &server.certificates;
    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(ping(&server, host, &all.ca, None).await, Ok(()), "{host}");
    }
    says(ping(&server, "localhost", &all.other_ca, None).await, "UnknownIssuer");
    assert!(server.url().ends_with(&format!("?ca={}", all.ca.display())), "{}", server.url());
}

#[tokio::test]
async fn a_certificate_whose_time_is_over_is_refused() {
    let server = TlsServer::setup().shows(|all| &all.expired).start().await;
    says(ping(&server, "localhost", &server.certificates.ca, None).await, "xpired");
}

#[tokio::test]
async fn a_certificate_of_another_host_is_refused() {
    let server = TlsServer::setup().shows(|all| &all.elsewhere).start().await;
    says(ping(&server, "localhost", &server.certificates.ca, None).await, "not valid for name");
}

#[tokio::test]
async fn a_server_asks_its_clients_who_they_are() {
    let server = TlsServer::setup().asks_clients().start().await;
    let all = &server.certificates;
    assert_eq!(ping(&server, "localhost", &all.ca, Some(&all.client)).await, Ok(()));
    for client in [None, Some(&all.stranger)] {
        assert!(ping(&server, "localhost", &all.ca, client).await.is_err(), "{client:?}");
    }
}

#[tokio::test]
async fn the_test_itself_looks_past_tls() {
    let server = TlsServer::setup().asks_clients().start().await;
    let ping = redis::cmd("PING").query_async::<()>(&mut server.server.connection().await).await;
    assert_eq!(ping, Ok(()));
}
