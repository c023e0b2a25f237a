//! The job of the bench: a payload of so many bytes that no two jobs share.

use sprag::{Codec, Envelope, Job, Kind, QueueName, StoreError};

/// As JSON: two quotes, and letters between.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Ballast(String);

impl Job for Ballast {
    const KIND: &'static str = "bench:ballast";
    const QUEUE: &'static str = "bench";
    const CODEC: Codec = Codec::Json;
}

/// The quotes.
pub(super) const LEAST: usize = 2;

impl Ballast {
    pub(super) fn of(bytes: usize) -> Self {
        let letters = bytes.saturating_sub(LEAST);
        Self(std::iter::repeat_with(fastrand::alphanumeric).take(letters).collect())
    }

    /// As many of them as envelopes.
    pub(super) fn envelopes(count: usize, bytes: usize) -> Result<Vec<Envelope>, StoreError> {
        let (queue, kind) = (QueueName::new(Self::QUEUE)?, Kind::new(Self::KIND)?);
        let envelope = |_| {
            let payload = format!("\"{}\"", Self::of(bytes).0);
            Envelope::builder(queue.clone(), kind.clone()).payload(payload, Self::CODEC).build()
        };
        (0..count).map(envelope).collect()
    }
}
