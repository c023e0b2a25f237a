//! Where the demo runs: a given Redis, in a namespace of its own, or a private server.

use super::server::Server;
use crate::{args::Global, connect, fail::Failure, out, scratch};
use redis::{ConnectionInfo, aio::MultiplexedConnection};
use sprag::{Namespace, RedisStore, StoreError};
use tempfile::TempDir;

pub(super) struct Place {
    pub(super) url: String,
    pub(super) namespace: Namespace,
    /// None: the server is somebody else's.
    server: Option<Server>,
}

impl Place {
    pub(super) async fn find(global: &Global, dir: &TempDir) -> Result<Self, Failure> {
        let namespace = scratch::namespace(global, "demo")?;
        match connect::given_url(global)? {
            Some(url) => {
                scratch::check_url(&url, "demo")?;
                let text = format!(
                    "The demo uses the Redis that was named, in the namespace {namespace}, whose \
                     keys it deletes at the end."
                );
                out::talk(global, &text);
                Ok(Self { url, namespace, server: None })
            }
            None => {
                let server = Server::start(dir.path()).await?;
                let text = format!(
                    "The demo started a private {} on a unix socket, and ends it at the end.",
                    server.program
                );
                out::talk(global, &text);
                let url = server.url.clone();
                Ok(Self { url, namespace: Namespace::default(), server: Some(server) })
            }
        }
    }

    pub(super) fn store(&self) -> Result<RedisStore, StoreError> {
        let store = connect::builder(&self.url)?.namespace(self.namespace.clone());
        store.repeat_budget(connect::BUDGET).build()
    }

    pub(super) fn connection_info(&self) -> anyhow::Result<ConnectionInfo> {
        scratch::connection_info(&self.url)
    }

    /// A connection past the library, to look at what it wrote.
    pub(super) async fn connection(&self) -> anyhow::Result<MultiplexedConnection> {
        scratch::connection(&self.url).await
    }

    pub(super) fn key(&self, queue: &str, name: &str) -> String {
        format!("{}:{{{queue}}}:{name}", self.namespace)
    }

    /// Deletes this run's keys from a server that stays. Nobody may write any more.
    pub(super) async fn clean_up(&self) -> anyhow::Result<()> {
        if self.server.is_some() {
            return Ok(());
        }
        scratch::clean_up(&self.url, &self.namespace).await
    }
}
