//! Where a case of a suite stands: a server of its own, or, in a run
//! [`elsewhere`](super::Elsewhere), a namespace of its own on what all cases share.

use super::{Address, Server};
use redis::aio::MultiplexedConnection;
use sprag::Namespace;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// The URL by which the library reaches what all cases share.
pub(super) const SERVER: &str = "SPRAG_TEST_SERVER";
/// The URLs by which the test itself looks at the data, one of each master; without them, the same.
pub(super) const LOOK: &str = "SPRAG_TEST_LOOK";
/// What the namespaces of all cases begin with; a hyphen and a number follow.
pub const CASES: &str = "case";

/// The rules of an access control list for the namespace [`CASES`], made out for all namespaces of
/// cases. The clock of the tests is read by scripts, with GET, which no rule for real scripts
/// allows.
pub fn rules_of_cases(rules: impl IntoIterator<Item = String>) -> Vec<String> {
    let to_all = |rule: String| rule.replace(&format!("{CASES}:"), &format!("{CASES}-*:"));
    rules.into_iter().map(to_all).chain(["+get".to_owned()]).collect()
}

/// The server, the namespace, and a way to look at the data past the library.
#[derive(Debug)]
pub struct Ground {
    pub url: String,
    pub namespace: Namespace,
    nodes: Vec<MultiplexedConnection>,
    owners: Mutex<HashMap<String, usize>>,
    _server: Option<Server>,
}

impl Ground {
    pub async fn start() -> Self {
        match std::env::var(SERVER) {
            Ok(url) if !url.is_empty() => Self::shared(url).await,
            _ => Self::own().await,
        }
    }

    async fn own() -> Self {
        let server = Server::start().await;
        Self {
            url: server.url(),
            namespace: Namespace::default(),
            nodes: vec![server.connection().await],
            owners: Mutex::default(),
            _server: Some(server),
        }
    }

    async fn shared(url: String) -> Self {
        let look = std::env::var(LOOK).unwrap_or_else(|_| url.clone());
        let mut nodes = Vec::new();
        for url in look.split(' ') {
            let config =
                redis::AsyncConnectionConfig::new().set_response_timeout(Some(super::PATIENCE));
            let client = redis::Client::open(url).expect("a url to look by");
            let node = client.get_multiplexed_async_connection_with_config(&config).await;
            nodes.push(node.expect("the server answers"));
        }
        let namespace = Namespace::new(format!("{CASES}-{:016x}", fastrand::u64(..)));
        let namespace = namespace.expect("a namespace");
        Self { url, namespace, nodes, owners: Mutex::default(), _server: None }
    }

    /// Where a single server listens: a proxy can stand in front of it. None of a cluster, of
    /// sentinels and of TLS.
    pub fn address(&self) -> Option<Address> {
        if let Some(path) = self.url.strip_prefix("redis+unix://") {
            return Some(Address::Unix(PathBuf::from(path)));
        }
        let port = self.url.strip_prefix("redis://127.0.0.1:")?;
        port.parse().ok().map(Address::Tcp)
    }

    /// A connection to the node that has the key.
    pub async fn node_of(&self, key: &str) -> MultiplexedConnection {
        let [only] = &*self.nodes else { return self.nodes[self.owner(key).await].clone() };
        only.clone()
    }

    /// A connection to each node.
    pub fn nodes(&self) -> impl Iterator<Item = MultiplexedConnection> {
        self.nodes.iter().cloned()
    }

    /// Asked once of each hash tag: no slot moves during a suite.
    async fn owner(&self, key: &str) -> usize {
        let tag = key.split_inclusive('}').next().unwrap_or(key);
        let owners = || self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = owners().get(tag) {
            return *owner;
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let mut exists = redis::cmd("EXISTS");
            // The others say MOVED.
            if exists.arg(key).query_async::<u64>(&mut node.clone()).await.is_ok() {
                owners().insert(tag.to_owned(), number);
                return number;
            }
        }
        panic!("no node has {key}");
    }
}
