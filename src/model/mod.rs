//! What jobs are made of: names, bounds, states, errors. No I/O.

mod envelope;
mod error;
mod fingerprint;
mod names;
pub(crate) mod record;
mod state;
mod time;
mod unique;

pub use envelope::{Codec, Envelope, EnvelopeBuilder, MAX_BATCH, MAX_BATCH_BYTES, MAX_PAYLOAD};
pub use error::StoreError;
pub use fingerprint::Fingerprint;
pub use names::{Fence, JobId, Kind, Namespace, Partition, QueueName, WorkerId};
pub use state::State;
pub use time::{MAX_DURATION, Timestamp, When};
pub use unique::{Mode, Replace, Unique};

pub(crate) use time::{checked, checked_lease, checked_wait, millis};
