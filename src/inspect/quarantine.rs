//! Fingerprints that killed their workers.

use super::Inspector;
use crate::{
    model::{Fingerprint, QueueName, StoreError},
    store::{Change, Quarantine, Released},
};

impl Inspector {
    /// The fingerprints in quarantine, sorted.
    ///
    /// # Errors
    /// See [`Inspector`].
    pub async fn quarantines(&self, queue: impl AsRef<str>) -> Result<Vec<Quarantine>, StoreError> {
        self.store.quarantines(&QueueName::new(queue)?).await
    }

    /// What is known of a fingerprint in quarantine.
    ///
    /// # Errors
    /// `NotFound` if it is not in quarantine.
    pub async fn quarantined(
        &self,
        queue: impl AsRef<str>,
        fingerprint: impl AsRef<str>,
    ) -> Result<Quarantine, StoreError> {
        let fingerprint = Fingerprint::new(fingerprint.as_ref())?;
        let mut all = self.quarantines(queue).await?.into_iter();
        let absent = || StoreError::NotFound(format!("fingerprint {fingerprint}"));
        all.find(|entry| entry.fingerprint == fingerprint).ok_or_else(absent)
    }

    /// Closes a fingerprint to enqueue and claim, with a reason (cut at 4 KiB) for the next one who
    /// looks. Makes the queue if need be.
    ///
    /// # Errors
    /// `Invalid` unless the fingerprint is 32 lowercase hex digits.
    pub async fn quarantine(
        &self,
        queue: impl AsRef<str>,
        fingerprint: impl AsRef<str>,
        reason: Option<&str>,
    ) -> Result<Change, StoreError> {
        let fingerprint = Fingerprint::new(fingerprint.as_ref())?;
        self.store.quarantine(&QueueName::new(queue)?, &fingerprint, reason).await
    }

    /// Opens a fingerprint, then puts its jobs back. Broken off, it is to be called again and goes
    /// on with what is left.
    ///
    /// # Errors
    /// `NotFound` if neither the fingerprint nor any job of it is in quarantine.
    pub async fn release(
        &self,
        queue: impl AsRef<str>,
        fingerprint: impl AsRef<str>,
    ) -> Result<Released, StoreError> {
        let fingerprint = Fingerprint::new(fingerprint.as_ref())?;
        self.store.release(&QueueName::new(queue)?, &fingerprint).await
    }
}
