//! The doctor: what is wrong with a server and with the queues on it, while they work.
//!
//! `queue` walks along a queue's keys in slices that a script judges, each at one moment; `lanes`
//! judges what only many slices together tell; `registry` looks at the list of queues. `server`
//! reads what the server says of itself, `advice` judges it. `checks` has the words.

mod advice;
mod checks;
mod lanes;
mod queue;
mod registry;
mod server;

use super::call::Pauses;
use super::{Inner, RedisStore};
use crate::model::{QueueName, StoreError};
use serde::Serialize;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Jobs may be late, lost from view, or run more often than they should.
    Warn,
    /// Jobs are lost or stuck, or will be.
    Fail,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Its kind: a word that stays the same.
    pub check: &'static str,
    /// In which queue; none: it concerns the server.
    pub queue: Option<String>,
    /// Which job, key or name.
    pub id: Option<String>,
    /// What was seen.
    pub message: String,
    /// What follows from it.
    pub means: &'static str,
    /// What to do.
    pub r#do: &'static str,
    /// It was mended.
    pub repaired: bool,
    /// It can be mended without risk.
    #[serde(skip)]
    pub repairable: bool,
}

impl Inner {
    /// The servers that hold queues, one by one; by name, if there are several.
    async fn by_server(&self) -> Result<Vec<(Option<String>, Self)>, StoreError> {
        let mut pauses = Pauses::within(self.budget);
        let servers = loop {
            match self.link.servers().await {
                Ok(servers) => break servers,
                Err(fault) => pauses.before_repeat(fault).await?,
            }
        };
        Ok(servers.into_iter().map(|(name, link)| (name, self.over(link))).collect())
    }
}

impl Finding {
    fn new(check: &'static str, message: String) -> Self {
        let known = checks::of(check);
        Self {
            severity: known.severity,
            check: known.check,
            queue: None,
            id: None,
            message,
            means: known.means,
            r#do: known.advice,
            repaired: false,
            repairable: known.repairable,
        }
    }

    /// Of a queue.
    fn of(queue: &QueueName, check: &'static str, message: String) -> Self {
        Self { queue: Some(queue.to_string()), ..Self::new(check, message) }
    }
}

/// What was found in a queue.
#[derive(Debug, Clone, Default)]
pub struct Examined {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// So many jobs have a record there.
    pub jobs: u64,
}

/// Looks for what is wrong. Of queues at work as well: it tells only of what holds at one moment.
///
/// # Errors
/// Every method: `Unavailable` if the server is away, or no node of a cluster answers. What else cannot be
/// looked at is a finding.
#[derive(Debug)]
pub struct Doctor {
    inner: Arc<Inner>,
    /// Pending jobs whose records cannot be read, with their headers: mended at the next look, when
    /// their entries are met.
    undecodable: HashMap<QueueName, HashMap<Vec<u8>, Vec<u8>>>,
    /// Nodes of a cluster that did not answer.
    away: BTreeSet<String>,
}

impl RedisStore {
    /// What looks for what is wrong, and mends it if told to.
    pub fn doctor(&self) -> Doctor {
        Doctor { inner: self.0.clone(), undecodable: HashMap::new(), away: BTreeSet::new() }
    }
}
