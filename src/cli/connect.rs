//! The store that flags and environment name.

use crate::{args::Global, fail::Failure};
use sprag::{
    Client, Inspector, Namespace, RedisStore, StoreError,
    store::{Callers, RedisStoreBuilder},
    with_env_password,
};
use std::{ffi::OsString, time::Duration};

/// For how long a command repeats what an unavailable server did not answer: a person waits. Long
/// enough that a call whose answer never comes is made again.
pub(crate) const BUDGET: Duration = Duration::from_secs(6);

/// The same where somebody looks on.
const LIVE_BUDGET: Duration = Duration::from_secs(2);

/// The store of a command. Settlements name themselves, so that the same command again succeeds.
pub(crate) fn store(global: &Global) -> Result<RedisStore, Failure> {
    store_of(global, Callers::PerSettlement)
}

/// The same; settlements are known by what was asked for.
pub(crate) fn store_of(global: &Global, callers: Callers) -> Result<RedisStore, Failure> {
    Ok(named(global)?.repeat_budget(BUDGET).callers(callers).build()?)
}

/// What looks at jobs and queues, and steers them.
pub(crate) fn inspector(global: &Global) -> Result<Inspector, Failure> {
    Ok(Inspector::new(looking(global)?))
}

/// A store to look by, also at a server that no app would use: who is called at night must see what is
/// there.
pub(crate) fn looking(global: &Global) -> Result<RedisStore, Failure> {
    let builder = named(global)?.repeat_budget(BUDGET).callers(Callers::PerSettlement);
    Ok(builder.allow_eviction().build()?)
}

/// The same for a picture that is drawn anew: it says soon that there is no answer, and asks again.
pub(crate) fn live_inspector(global: &Global) -> Result<Inspector, Failure> {
    Ok(Inspector::new(named(global)?.repeat_budget(LIVE_BUDGET).allow_eviction().build()?))
}

/// The store with the library's usual settings, for a process that goes on.
pub(crate) fn client(global: &Global) -> Result<Client, Failure> {
    Ok(Client::new(named(global)?.build()?))
}

fn named(global: &Global) -> Result<RedisStoreBuilder, StoreError> {
    let url = url(global)?;
    Ok(builder(&url)?.namespace(namespace(global)?))
}

/// The namespace that flags, environment and file name.
pub(crate) fn namespace(global: &Global) -> Result<Namespace, StoreError> {
    let namespace = match &global.namespace {
        Some(namespace) => Some(namespace.clone()),
        None => env("SPRAG_NAMESPACE")?.map(Namespace::new).transpose()?,
    };
    Ok(namespace.or_else(|| global.file.namespace.clone()).unwrap_or_default())
}

/// A store on this server; `memory://` is refused.
pub(crate) fn builder(url: &str) -> Result<RedisStoreBuilder, StoreError> {
    if url.starts_with("memory:") {
        return Err(StoreError::Invalid(
            "url: memory:// lives inside one process, and each sprag command is a process of its \
             own; must be redis://…, redis+unix://…, redis+sentinel://… or \
             redis+cluster://…"
                .to_owned(),
        ));
    }
    Ok(RedisStore::builder(url))
}

/// The URL of flag, environment or file, else the usual one, with the environment's password.
pub(crate) fn url(global: &Global) -> Result<String, StoreError> {
    match given_url(global)? {
        Some(url) => Ok(url),
        None => with_env_password("redis://127.0.0.1:6379".to_owned()),
    }
}

/// The URL of flag, environment or file, if there is one, with the environment's password.
pub(crate) fn given_url(global: &Global) -> Result<Option<String>, StoreError> {
    named_url(global)?.map(with_env_password).transpose()
}

fn named_url(global: &Global) -> Result<Option<String>, StoreError> {
    if let Some(url) = &global.url {
        return Ok(Some(url.clone()));
    }
    let named = match env("SPRAG_REDIS_URL")? {
        None => env("REDIS_URL")?,
        named => named,
    };
    Ok(named.or_else(|| global.file.url.clone()))
}

/// A variable that is set to something.
pub(crate) fn env(name: &str) -> Result<Option<String>, StoreError> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(OsString::into_string).transpose().map_err(|_| {
        // Not its value, which may be a secret.
        StoreError::Invalid(format!("environment variable {name}: not UTF-8"))
    })
}
