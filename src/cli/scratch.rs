//! A namespace of a command's own on somebody's server, deleted at the end.

use crate::{args::Global, fail::Failure};
use anyhow::Context;
use redis::{ConnectionInfo, IntoConnectionInfo, aio::MultiplexedConnection};
use sprag::{Namespace, StoreError};

/// A new one, named after the command. Whoever names one is refused: its keys would be deleted.
pub(crate) fn namespace(global: &Global, command: &str) -> Result<Namespace, Failure> {
    if let Some(namespace) = &global.namespace {
        return Err(StoreError::Invalid(format!(
            "--namespace: {namespace}; the {command} makes one of its own and deletes it"
        ))
        .into());
    }
    Ok(Namespace::new(format!("sprag-{command}-{:08x}", fastrand::u32(..)))?)
}

/// The way to a server past the library. Its error does not repeat the URL.
pub(crate) fn connection_info(url: &str) -> anyhow::Result<ConnectionInfo> {
    url.into_connection_info().context("bad URL")
}

/// A connection past the library.
pub(crate) async fn connection(url: &str) -> anyhow::Result<MultiplexedConnection> {
    let client = redis::Client::open(connection_info(url)?)?;
    Ok(client.get_multiplexed_async_connection().await?)
}

/// Deletes all keys of the namespace. Nobody may write any more.
pub(crate) async fn clean_up(url: &str, namespace: &Namespace) -> anyhow::Result<()> {
    let left = || format!("the keys {namespace}:* are left behind");
    // What was on its way when its sender ended may come after the first look.
    while delete_keys(url, namespace).await.with_context(left)? > 0 {}
    Ok(())
}

async fn delete_keys(url: &str, namespace: &Namespace) -> anyhow::Result<usize> {
    let mut connection = connection(url).await?;
    let (mut cursor, mut deleted) = (0u64, 0);
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{namespace}:*")).arg("COUNT").arg(1_000);
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
