//! How safe a job is to be before its enqueue is answered.

use crate::model::{StoreError, checked_wait};
use std::time::Duration;

/// What is waited for before an enqueue is answered, besides Redis' own answer. Nothing by default: as
/// durable as the server's settings make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[must_use = "a durability is handed to a client, or to a store"]
pub struct Durability {
    /// So many replicas have it in memory (`WAIT`).
    pub(crate) replicas: Option<u8>,
    /// The server has it on its disk (`WAITAOF`).
    pub(crate) fsync: bool,
    /// For as long as that each is waited for.
    pub(crate) timeout: Duration,
}

impl Durability {
    /// So many replicas, 1 to 100, have received it. They are waited for as long as the timeout says:
    /// whole ms, 1 ms to 1 min.
    ///
    /// It makes a loss at a failover less likely, not impossible: a replica that did not receive it may
    /// be the one that is promoted.
    pub fn replicas(self, replicas: u8, timeout: Duration) -> Self {
        Self { replicas: Some(replicas), timeout, ..self }
    }

    /// The server has written it to its disk: needs Redis 7.2 or Valkey 8 with `appendonly yes`. The
    /// timeout, whole ms, 1 ms to 1 min, is that of [`replicas`](Self::replicas), too: the last one
    /// counts.
    pub fn fsync(self, timeout: Duration) -> Self {
        Self { fsync: true, timeout, ..self }
    }

    pub(crate) fn is_none(self) -> bool {
        self.replicas.is_none() && !self.fsync
    }

    pub(crate) fn check(self) -> Result<(), StoreError> {
        if let Some(replicas) = self.replicas
            && !(1..=100).contains(&replicas)
        {
            return Err(StoreError::invalid("replicas", replicas, "1 to 100"));
        }
        if self.is_none() {
            let nothing = "at least one replica, or fsync";
            return Err(StoreError::invalid("durability", "none", nothing));
        }
        checked_wait("durability timeout", self.timeout)?;
        Ok(())
    }
}
