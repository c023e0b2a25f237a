//! What a server must be, looked at when a connection to it is made.
//!
//! What would lose jobs is refused; what may be meant is said once.

use super::link::Settings;
use crate::{model::StoreError, store::redis::fault::Fault};
use redis::{Value, aio::MultiplexedConnection, from_redis_value};
use std::{collections::HashMap, fmt::Display};

/// What `INFO` says, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Facts {
    version: Option<String>,
    valkey: Option<String>,
    policy: Option<String>,
    cluster: Option<bool>,
    sentinel: bool,
    appends: Option<bool>,
}

impl Facts {
    fn read(info: &str) -> Self {
        let fields: HashMap<_, _> =
            info.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
        let text = |name: &str| fields.get(name).map(|value| (*value).to_owned());
        let is = |name: &str| fields.get(name).map(|value| *value != "0");
        Self {
            version: text("redis_version"),
            valkey: text("valkey_version"),
            policy: text("maxmemory_policy"),
            cluster: is("cluster_enabled"),
            sentinel: fields.get("redis_mode") == Some(&"sentinel"),
            appends: is("aof_enabled"),
        }
    }

    /// Why this server is not to be used.
    fn refusal(&self, settings: &Settings) -> Option<String> {
        let too_old = |is: &str, version: &str| {
            Some(format!(
                "{is} {version} is too old: sprag needs Redis 7.0 or Valkey 8, or later; upgrade the server"
            ))
        };
        match (&self.valkey, &self.version) {
            (Some(version), _) if major(version).is_some_and(|major| major < 8) => {
                return too_old("Valkey", version);
            }
            (None, Some(version)) if major(version).is_some_and(|major| major < 7) => {
                return too_old("Redis", version);
            }
            _ => {}
        }
        if self.sentinel {
            return Some(
                "this is a sentinel: use redis+sentinel://host:port/master-name".to_owned(),
            );
        }
        match self.cluster {
            Some(true) if !settings.cluster => {
                return Some(
                    "this server is a node of a cluster: use redis+cluster:// (rediss+cluster://)"
                        .to_owned(),
                );
            }
            Some(false) if settings.cluster => {
                return Some(
                    "this server is not a node of a cluster (cluster_enabled:0): use redis://"
                        .to_owned(),
                );
            }
            _ => {}
        }
        let policy = self.policy.as_deref().filter(|policy| policy.starts_with("allkeys"))?;
        (!settings.allow_eviction).then(|| {
            format!(
                "maxmemory-policy is {policy}: when memory is full, the server deletes whole queues without \
                 a word. Set maxmemory-policy noeviction; or, if losing jobs is all right, \
                 allow_eviction (allow_eviction=yes in the URL)"
            )
        })
    }

    pub(super) fn warn(&self, server: &dyn Display) {
        for warning in self.warnings() {
            tracing::warn!(%server, "{warning}");
        }
    }

    /// What may be meant, but should be known.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(policy) = self.policy.as_deref().filter(|policy| policy.starts_with("allkeys"))
        {
            warnings.push(format!(
                "maxmemory-policy is {policy}, and allow_eviction is set: when memory is full, whole \
                 queues are deleted"
            ));
        }
        if self.appends == Some(false) {
            warnings.push(
                "the server has no append-only file: when it ends, all jobs since its last snapshot, if \
                 it makes any, are lost; set appendonly yes"
                    .to_owned(),
            );
        }
        let unknown = [
            (self.version.is_none(), "its version"),
            (self.policy.is_none(), "its eviction policy"),
            (self.cluster.is_none(), "whether it is a node of a cluster"),
        ];
        let unknown: Vec<_> = unknown.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            warnings.push(format!(
                "could not verify {unknown}: the user may not send INFO, or it says nothing"
            ));
        }
        warnings
    }
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// Asks the server what it is.
pub(super) async fn check(
    connection: &mut MultiplexedConnection,
    settings: &Settings,
) -> Result<Facts, Fault> {
    let answer = connection.send_packed_command(&redis::cmd("INFO")).await;
    let facts = match answer.and_then(Value::extract_error) {
        Ok(answer) => Facts::read(&from_redis_value::<String>(answer).unwrap_or_default()),
        Err(error) if error.code() == Some("NOPERM") => Facts::default(),
        Err(error) => return Err(Fault::from(error)),
    };
    if let Some(refusal) = facts.refusal(settings) {
        return Err(Fault::refused(StoreError::Backend(refusal)));
    }
    Ok(facts)
}

#[cfg(test)]
mod tests;
