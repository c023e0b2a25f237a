//! The same on other servers than this machine's, with fewer sequences.

use crate::support::{Cluster, Elsewhere, Make, Sentinels, Server, TlsServer};

/// Both properties.
const PROPERTIES: &str = "the_stores_are_equal";
/// Of each property.
const SEQUENCES: u32 = 100;

async fn are_equal(there: Elsewhere) {
    there.env("SPRAG_MODEL_SEQUENCES", SEQUENCES).passes(PROPERTIES, 2).await;
}

async fn of_make(make: Make) {
    let Some(make) = make.if_here() else { return };
    let server = Server::setup().make(make).start().await;
    are_equal(Elsewhere::server(&server)).await;
}

#[tokio::test]
async fn redis_8_2() {
    of_make(Make::Redis8).await;
}

#[tokio::test]
async fn valkey_9() {
    of_make(Make::Valkey9).await;
}

#[tokio::test]
async fn cluster() {
    let cluster = Cluster::start(3, 0).await;
    are_equal(Elsewhere::cluster(&cluster)).await;
}

#[tokio::test]
async fn sentinels() {
    let all = Sentinels::start().await;
    are_equal(Elsewhere::sentinels(&all).await).await;
}

#[tokio::test]
async fn tls() {
    are_equal(Elsewhere::tls(&TlsServer::start().await)).await;
}
