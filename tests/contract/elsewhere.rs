//! The same suite on other servers than this machine's: other makes, a cluster, behind sentinels,
//! over TLS, as a user who may not do everything. Every case has a namespace of its own there.

use crate::support::{
    self, Cluster, Elsewhere, Make, Sentinels, Server, TlsServer, rules_of_cases,
};
use sprag::{Namespace, store::Role};

/// All cases on Redis.
pub(crate) const CASES: &str = "::redis::";
/// So many there are at least.
pub(crate) const MANY: usize = 600;

async fn of_make(make: Make) {
    let Some(make) = make.if_here() else { return };
    let server = Server::setup().make(make).tcp().start().await;
    Elsewhere::server(&server).passes(CASES, MANY).await;
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
    Elsewhere::cluster(&cluster).passes(CASES, MANY).await;
}

#[tokio::test]
async fn sentinels() {
    let all = Sentinels::start().await;
    Elsewhere::sentinels(&all).await.passes(CASES, MANY).await;
}

#[tokio::test]
async fn tls() {
    let server = TlsServer::setup().asks_clients().start().await;
    Elsewhere::tls(&server).passes(CASES, MANY).await;
}

/// Who may do what the published rules say, and nothing else.
#[tokio::test]
async fn acl() {
    let namespace = Namespace::new(support::CASES).expect("a namespace");
    let rules = Role::ALL.into_iter().flat_map(|role| role.rules(&namespace));
    let mut rules = rules_of_cases(rules);
    rules.extend(["on", ">secret"].map(str::to_owned));
    let setup = Server::setup().tcp().user("suite", rules).password("all");
    let server = setup.start().await;
    Elsewhere::user(&server, "suite", "secret").passes(CASES, MANY).await;
}
