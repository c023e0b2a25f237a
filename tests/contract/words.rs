//! Short words for names, holders and expected answers.

use sprag::{
    Enqueued, Envelope, Fence, Fingerprint, JobId, State, StoreError, WorkerId,
    model::EnvelopeBuilder,
    store::{Claimed, Held},
};
use std::time::Duration;

pub(crate) const LEASE: Duration = secs(30);
pub(crate) const HOUR: Duration = secs(3_600);
pub(crate) const DAY: Duration = secs(24 * 3_600);

pub(crate) const UNFINISHED: [State; 4] =
    [State::Pending, State::Scheduled, State::Active, State::Retry];

/// The finished states; a job of the last one has left its fingerprint closed.
pub(crate) const ENDED: [State; 4] =
    [State::Completed, State::Archived, State::Cancelled, State::Quarantined];

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn id(text: &str) -> JobId {
    JobId::new(text).expect("id")
}

pub(crate) fn worker(text: &str) -> WorkerId {
    WorkerId::new(text).expect("worker")
}

pub(crate) fn build(job: EnvelopeBuilder) -> Envelope {
    job.build().expect("within its bounds")
}

pub(crate) fn held(job: &Claimed) -> Held {
    Held { id: job.id.clone(), fence: job.fence }
}

/// The same job under the fence after.
pub(crate) fn stale(held: &Held) -> Held {
    Held { id: held.id.clone(), fence: Fence(held.fence.0 + 1) }
}

/// The one outcome of a call with one item.
pub(crate) fn only<T>(mut outcomes: Vec<T>) -> T {
    assert_eq!(outcomes.len(), 1, "one item, one outcome");
    outcomes.remove(0)
}

pub(crate) fn rejected(id: &JobId) -> StoreError {
    StoreError::LeaseRejected { job_id: id.to_string() }
}

pub(crate) fn duplicate(id: &JobId) -> StoreError {
    StoreError::Duplicate { existing_id: id.to_string(), replaced: false }
}

/// The holder was open to the duplicate, and has its fields now.
pub(crate) fn replaced(id: &JobId) -> StoreError {
    StoreError::Duplicate { existing_id: id.to_string(), replaced: true }
}

/// The job was there before; no state if it is gone and remembered.
pub(crate) fn existing(id: &JobId, state: Option<State>) -> Result<Enqueued, StoreError> {
    Ok(Enqueued { id: id.clone(), state, existing: true })
}

pub(crate) fn quarantined(fingerprint: Fingerprint) -> StoreError {
    StoreError::Quarantined { fingerprint: fingerprint.to_string() }
}

pub(crate) fn conflict(id: &JobId) -> StoreError {
    StoreError::IdConflict { job_id: id.to_string() }
}

pub(crate) fn no_job(id: &JobId) -> StoreError {
    StoreError::NotFound(format!("job {id}"))
}

pub(crate) fn invalid(text: &str) -> StoreError {
    StoreError::Invalid(text.to_owned())
}

/// A duration as messages show it.
pub(crate) fn in_ms(duration: Duration) -> String {
    match duration.subsec_nanos() % 1_000_000 {
        0 => format!("{}ms", duration.as_millis()),
        part => format!("{}.{part:06}ms", duration.as_millis()),
    }
}
