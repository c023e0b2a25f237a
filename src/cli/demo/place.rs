//! Where the demo runs: a given Redis, in a namespace of its own, or a private server.

use super::server::Server;
use crate::{args::Global, connect, fail::Failure, out};
use anyhow::Context;
use redis::{ConnectionInfo, IntoConnectionInfo, aio::MultiplexedConnection};
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
        if let Some(namespace) = &global.namespace {
            return Err(StoreError::Invalid(format!(
                "--namespace: {namespace}; the demo makes one of its own and deletes it"
            ))
            .into());
        }
        match connect::given_url(global)? {
            Some(url) => {
                let namespace = Namespace::new(format!("sprag-demo-{:08x}", fastrand::u32(..)))?;
                connect::builder(&url)?.build()?;
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
        // The error does not repeat the URL.
        self.url.as_str().into_connection_info().context("bad URL")
    }

    /// A connection past the library, to look at what it wrote.
    pub(super) async fn connection(&self) -> anyhow::Result<MultiplexedConnection> {
        let client = redis::Client::open(self.connection_info()?)?;
        Ok(client.get_multiplexed_async_connection().await?)
    }

    pub(super) fn key(&self, queue: &str, name: &str) -> String {
        format!("{}:{{{queue}}}:{name}", self.namespace)
    }

    /// Deletes this run's keys from a server that stays. Nobody may write any more.
    pub(super) async fn clean_up(&self) -> anyhow::Result<()> {
        if self.server.is_some() {
            return Ok(());
        }
        let left = || format!("the keys {}:* of the demo are left behind", self.namespace);
        // What was on its way when its sender ended may come after the first look.
        while self.delete_keys().await.with_context(left)? > 0 {}
        Ok(())
    }

    async fn delete_keys(&self) -> anyhow::Result<usize> {
        let mut connection = self.connection().await?;
        let (mut cursor, mut deleted) = (0u64, 0);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{}:*", self.namespace));
            scan.arg("COUNT").arg(1_000);
            let (next, keys): (u64, Vec<Vec<u8>>) = scan.query_async(&mut connection).await?;
            if !keys.is_empty() {
                deleted += keys.len();
                redis::cmd("UNLINK").arg(keys).query_async::<()>(&mut connection).await?;
            }
            if next == 0 {
                return Ok(deleted);
            }
            cursor = next;
        }
    }
}
