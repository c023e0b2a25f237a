//! A job and the place where it is.

use crate::{
    model::{Envelope, Fingerprint, JobId, Mode, State, Timestamp, Unique, When},
    store::{Ending, Failure, Holder, JobInfo, Listed, MAX_FAILURES},
};
use bytes::Bytes;

/// A job as the store keeps it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) envelope: Envelope,
    /// What was enqueued under this id, by which a repeat is told from a conflict. The envelope has
    /// another fingerprint once its payload was replaced.
    pub(super) content: Fingerprint,
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
    Active { holder: Holder, progress: Option<String> },
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
        Self {
            envelope: as_stored(envelope, due, now),
            content: envelope.fingerprint,
            enqueued_at: now,
            attempt: 0,
            crash: 0,
            errors: Vec::new(),
            place,
        }
    }

    pub(super) fn id(&self) -> &JobId {
        &self.envelope.id
    }

    pub(super) fn state(&self) -> State {
        match &self.place {
            Place::Pending(_) => State::Pending,
            Place::Scheduled { .. } => State::Scheduled,
            Place::Retry { .. } => State::Retry,
            Place::Active { .. } => State::Active,
            Place::Finished(finished) => finished.state,
        }
    }

    pub(super) fn holder(&self) -> Option<&Holder> {
        match &self.place {
            Place::Active { holder, .. } => Some(holder),
            _ => None,
        }
    }

    pub(super) fn mode(&self) -> Option<Mode> {
        self.envelope.unique.as_ref().map(|unique| unique.mode)
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.envelope.deadline.map(|deadline| moment(deadline, self.enqueued_at))
    }

    /// Whether the deadline has passed.
    pub(super) fn is_past(&self, now: Timestamp) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// When the job is archived as expired if nothing happens: not while it runs.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        match &self.place {
            Place::Pending(_) | Place::Scheduled { .. } | Place::Retry { .. } => self.deadline(),
            Place::Active { .. } | Place::Finished(_) => None,
        }
    }

    /// When the job first became ready to run.
    pub(super) fn ready_at(&self) -> Timestamp {
        match self.envelope.run_at {
            When::At(due) => due,
            _ => self.enqueued_at,
        }
    }

    /// Moves a job that nobody runs to where it belongs by a new due time.
    pub(super) fn move_to(&mut self, due: Timestamp, now: Timestamp) {
        let later = due > now;
        self.envelope.run_at = if later { When::At(due) } else { When::Now };
        self.place = match (&self.place, later) {
            (Place::Retry { .. }, true) => Place::Retry { due },
            (_, true) => Place::Scheduled { due },
            (Place::Pending(position), false) => Place::Pending(*position),
            (_, false) => Place::Pending(Position::Back),
        };
    }

    pub(super) fn record_failure(&mut self, failure: Failure) {
        self.errors.push(failure);
        let too_many = self.errors.len().saturating_sub(MAX_FAILURES);
        self.errors.drain(..too_many);
    }

    pub(super) fn info(&self) -> JobInfo {
        let mut info = JobInfo {
            id: self.id().clone(),
            state: self.state(),
            envelope: Ok((self.envelope.clone(), self.enqueued_at)),
            attempt: self.attempt,
            crash: self.crash,
            due_at: None,
            holder: None,
            progress: None,
            errors: self.errors.clone(),
            result: None,
            ending: None,
            evicted_at: None,
        };
        match &self.place {
            Place::Pending(_) => {}
            Place::Scheduled { due } | Place::Retry { due } => info.due_at = Some(*due),
            Place::Active { holder, progress } => {
                info.holder = Some(holder.clone());
                info.progress = progress.clone();
            }
            Place::Finished(finished) => {
                info.result = finished.result.clone();
                info.ending = Some(finished.ending.clone());
                info.evicted_at = Some(finished.evicted_at);
            }
        }
        info
    }

    pub(super) fn listed(&self) -> Listed {
        let at = match &self.place {
            Place::Pending(_) => None,
            Place::Scheduled { due } | Place::Retry { due } => Some(*due),
            Place::Active { holder, .. } => Some(holder.lease_expires_at),
            Place::Finished(finished) => Some(finished.evicted_at),
        };
        let envelope = Envelope { payload: Bytes::new(), ..self.envelope.clone() };
        Listed { id: self.id().clone(), envelope: Ok((envelope, self.enqueued_at)), at }
    }
}

/// When a job is due, if that is not now. A debounced job waits for further events.
pub(super) fn due_later(job: &Envelope, now: Timestamp) -> Option<Timestamp> {
    let due = match job.unique.as_ref().map(|unique| unique.mode) {
        Some(Mode::Debounce { window, max_wait }) => now + max_wait.unwrap_or(window).min(window),
        _ => moment(job.run_at, now),
    };
    Some(due).filter(|due| *due > now)
}

pub(super) fn moment(when: When, now: Timestamp) -> Timestamp {
    match when {
        When::Now => now,
        When::In(delay) => now + delay,
        When::At(at) => at,
    }
}

/// The envelope as a record gives it back: a moment for every way of saying "later", the
/// fingerprint for a key that was the payload. What a duplicate may replace is its own affair.
fn as_stored(job: &Envelope, due: Option<Timestamp>, now: Timestamp) -> Envelope {
    let mut stored = job.clone();
    stored.run_at = due.map_or(When::Now, When::At);
    stored.deadline = job.deadline.map(|deadline| When::At(moment(deadline, now)));
    stored.unique = job.unique.as_ref().map(|unique| {
        let key = unique.given_key().unwrap_or(job.fingerprint.as_str().as_bytes());
        Unique { mode: unique.mode, any_kind: unique.any_kind, ..Unique::key(key) }
    });
    stored
}
