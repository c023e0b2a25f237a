//! A namespace of a command's own on somebody's server, deleted at the end.

use crate::{args::Global, fail::Failure};
use anyhow::Context;
use percent_encoding::percent_decode_str;
use redis::{
    Client, ClientTlsConfig, ConnectionInfo, IntoConnectionInfo, TlsCertificates,
    aio::MultiplexedConnection,
};
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

/// Refuses what is not one server, before anything is written: the namespace is looked at, and deleted,
/// past the library.
pub(crate) fn check_url(url: &str, command: &str) -> Result<(), StoreError> {
    // What cannot be read at all, and what a build lacks, the library says best.
    crate::connect::builder(url)?.build()?;
    let scheme = url.split("://").next().unwrap_or_default();
    if !scheme.ends_with("+sentinel") && !scheme.ends_with("+cluster") {
        return Ok(());
    }
    Err(StoreError::Invalid(format!(
        "url scheme: {scheme:?}; the {command} needs one server, to look at it and to clean up: must be \
         redis, rediss or redis+unix, with the address of a server that has no part in a cluster"
    )))
}

/// The way to a server past the library. Its error does not repeat the URL.
pub(crate) fn connection_info(url: &str) -> anyhow::Result<ConnectionInfo> {
    url.into_connection_info().context("bad URL")
}

/// A connection past the library.
pub(crate) async fn connection(url: &str) -> anyhow::Result<MultiplexedConnection> {
    let info = connection_info(url)?;
    let client = match url.starts_with("rediss://") {
        true => Client::build_with_tls(info, certificates(url)?)?,
        false => Client::open(info)?,
    };
    Ok(client.get_multiplexed_async_connection().await?)
}

/// The library has read the files already, and said what is wrong.
fn certificates(url: &str) -> anyhow::Result<TlsCertificates> {
    let read = |name| tls_file(url, name).map(std::fs::read).transpose();
    let client_tls = match (read("cert")?, read("key")?) {
        (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
        _ => None,
    };
    Ok(TlsCertificates { client_tls, root_cert: read("ca")? })
}

/// The file that a URL of TLS names for `ca`, `cert` or `key`.
pub(crate) fn tls_file(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let mut fields = query.split('&').filter_map(|field| field.split_once('='));
    let (_, file) = fields.rfind(|(field, _)| *field == name)?;
    Some(percent_decode_str(file).decode_utf8().ok()?.into_owned())
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
