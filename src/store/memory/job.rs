//! A job and the place where it is.

use crate::{
    model::{Envelope, State, Timestamp, Unique, When},
    store::{Ending, Failure, Holder, JobInfo, MAX_FAILURES},
};
use bytes::Bytes;

/// A job as the store keeps it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) envelope: Envelope,
    pub(super) enqueued_at: Timestamp,
    /// Failures that handlers reported.
    pub(super) attempt: u32,
    /// Times that a holder vanished.
    pub(super) crash: u32,
    pub(super) errors: Vec<Failure>,
    pub(super) place: Place,
}

/// Where a job is, and what only a job in that place has.
#[derive(Debug)]
pub(super) enum Place {
    Pending(Position),
    Scheduled { due: Timestamp },
    Retry { due: Timestamp },
    Active(Holder),
    Finished(Finished),
}

/// Where in its lane a pending job stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Position {
    /// Joins at the front.
    Front,
    /// Joins at the back.
    Back,
    /// Stands there; lower numbers are claimed first.
    At(i64),
}

/// What is kept of a finished job beside its record.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) state: State,
    pub(super) ending: Ending,
    pub(super) result: Option<Bytes>,
    pub(super) evicted_at: Timestamp,
}

impl Job {
    /// A new job: pending at the back of its lane, or scheduled if it is due later.
    pub(super) fn new(envelope: &Envelope, now: Timestamp) -> Self {
        let due = due_later(envelope, now);
        let place = match due {
            Some(due) => Place::Scheduled { due },
            None => Place::Pending(Position::Back),
        };
        let envelope = as_stored(envelope, due);
        Self { envelope, enqueued_at: now, attempt: 0, crash: 0, errors: Vec::new(), place }
    }

    pub(super) fn state(&self) -> State {
        match &self.place {
            Place::Pending(_) => State::Pending,
            Place::Scheduled { .. } => State::Scheduled,
            Place::Retry { .. } => State::Retry,
            Place::Active(_) => State::Active,
            Place::Finished(finished) => finished.state,
        }
    }

    pub(super) fn holder(&self) -> Option<&Holder> {
        match &self.place {
            Place::Active(holder) => Some(holder),
            _ => None,
        }
    }

    /// When the job first became ready to run.
    pub(super) fn ready_at(&self) -> Timestamp {
        match self.envelope.run_at {
            When::At(due) => due,
            _ => self.enqueued_at,
        }
    }

    pub(super) fn record_failure(&mut self, failure: Failure) {
        self.errors.push(failure);
        let too_many = self.errors.len().saturating_sub(MAX_FAILURES);
        self.errors.drain(..too_many);
    }

    pub(super) fn info(&self) -> JobInfo {
        let mut info = JobInfo {
            id: self.envelope.id.clone(),
            state: self.state(),
            envelope: Ok((self.envelope.clone(), self.enqueued_at)),
            attempt: self.attempt,
            crash: self.crash,
            due_at: None,
            holder: None,
            errors: self.errors.clone(),
            result: None,
            ending: None,
            evicted_at: None,
        };
        match &self.place {
            Place::Pending(_) => {}
            Place::Scheduled { due } | Place::Retry { due } => info.due_at = Some(*due),
            Place::Active(holder) => info.holder = Some(holder.clone()),
            Place::Finished(finished) => {
                info.result = finished.result.clone();
                info.ending = Some(finished.ending.clone());
                info.evicted_at = Some(finished.evicted_at);
            }
        }
        info
    }
}

/// When a job is due, if that is not now.
pub(super) fn due_later(job: &Envelope, now: Timestamp) -> Option<Timestamp> {
    match job.run_at {
        When::Now => None,
        When::In(delay) => Some(now + delay),
        When::At(at) => Some(at).filter(|at| *at > now),
    }
}

/// The envelope as a record gives it back: a moment for every way of saying "later", and the
/// fingerprint for a key that was the payload.
fn as_stored(job: &Envelope, due: Option<Timestamp>) -> Envelope {
    let mut stored = job.clone();
    stored.run_at = due.map_or(When::Now, When::At);
    let by_payload = Unique::by_payload();
    stored.unique = stored.unique.map(|unique| match unique.any_kind {
        false if unique == by_payload => Unique::key(job.fingerprint.as_str()),
        true if unique == by_payload.any_kind() => Unique::key(job.fingerprint.as_str()).any_kind(),
        _ => unique,
    });
    stored
}
