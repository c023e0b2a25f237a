//! One queue and what is in it. Every move of a job is a [`take`](Queue::take) and a
//! [`put`](Queue::put): nothing else touches the count, the lanes and the timers.

use super::{
    days::Days,
    job::{Finished, Job, Place, Position},
    listeners::News,
    quarantine::Crashes,
    settings::Settings,
    unique::Key,
};
use crate::{
    model::{Fingerprint, JobId, State, Timestamp},
    store::Quarantine,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

/// Ids by the moment at which something happens to them; those of one moment in the order of ids.
type Timer = BTreeSet<(Timestamp, JobId)>;

/// A queue. One that does not exist is like an empty one that is forgotten afterwards.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) jobs: HashMap<JobId, Job>,
    /// The lanes, one after the other: the first entry is claimed next.
    pub(super) pending: BTreeMap<(Reverse<u8>, i64), JobId>,
    /// When a scheduled or retry job is due.
    pub(super) due: Timer,
    /// When a pending, scheduled or retry job expires.
    pub(super) deadlines: Timer,
    /// When the lease of an active job ends.
    pub(super) leases: Timer,
    /// When a finished job is evicted.
    pub(super) evictions: Timer,
    /// Who holds a unique key.
    pub(super) keys: HashMap<String, Key>,
    /// Identities that outlive their record.
    pub(super) remembered: HashMap<JobId, Remembered>,
    /// Fingerprints that are closed to enqueue and claim.
    pub(super) quarantine: HashMap<Fingerprint, Quarantine>,
    pub(super) crashes: HashMap<Fingerprint, Crashes>,
    pub(super) settings: Settings,
    pub(super) days: Days,
    pub(super) unfinished: u64,
    /// The last fence.
    pub(super) fence: u64,
    /// The last sweep that did everything.
    pub(super) swept_at: Option<Timestamp>,
    /// Something was written into it: it exists.
    pub(super) made: bool,
    /// A wake token is to be left: a job became claimable.
    pub(super) wake: bool,
    /// Until when somebody waits for jobs: they are told of ends.
    pub(super) watched: Option<Timestamp>,
    /// What is to be told.
    pub(super) news: Vec<News>,
    front: i64,
    back: i64,
}

/// What is known of a job that is gone.
#[derive(Debug)]
pub(super) struct Remembered {
    /// What was enqueued under this id.
    pub(super) content: Fingerprint,
    pub(super) until: Timestamp,
}

impl Queue {
    /// Takes a job out of its place.
    pub(super) fn take(&mut self, id: &JobId) -> Option<Job> {
        let job = self.jobs.remove(id)?;
        match &job.place {
            Place::Pending(Position::At(at)) => {
                self.pending.remove(&(Reverse(job.envelope.priority), *at));
            }
            Place::Pending(_) => {}
            Place::Scheduled { due } | Place::Retry { due } => {
                self.due.remove(&(*due, id.clone()));
            }
            Place::Active { holder, .. } => {
                self.leases.remove(&(holder.lease_expires_at, id.clone()));
            }
            Place::Finished(Finished { evicted_at, .. }) => {
                self.evictions.remove(&(*evicted_at, id.clone()));
            }
        }
        if let Some(deadline) = job.expires_at() {
            self.deadlines.remove(&(deadline, id.clone()));
        }
        self.unfinished -= u64::from(job.state().is_unfinished());
        Some(job)
    }

    /// Puts a job into its place.
    pub(super) fn put(&mut self, mut job: Job) {
        let id = job.id().clone();
        match &mut job.place {
            Place::Pending(position) => {
                self.wake |= !matches!(position, Position::At(_));
                let at = self.stand(*position);
                *position = Position::At(at);
                self.pending.insert((Reverse(job.envelope.priority), at), id.clone());
            }
            Place::Scheduled { due } | Place::Retry { due } => {
                self.due.insert((*due, id.clone()));
            }
            Place::Active { holder, .. } => {
                self.leases.insert((holder.lease_expires_at, id.clone()));
            }
            Place::Finished(finished) => {
                self.evictions.insert((finished.evicted_at, id.clone()));
            }
        }
        if let Some(deadline) = job.expires_at() {
            self.deadlines.insert((deadline, id.clone()));
        }
        self.unfinished += u64::from(job.state().is_unfinished());
        self.made = true;
        self.jobs.insert(id, job);
    }

    /// A job that was taken comes to its end: those who wait for jobs are told of it, unless it was
    /// finished before.
    pub(super) fn tell_end(&mut self, job: &Job, state: Option<State>, now: Timestamp) {
        if job.state().is_unfinished() && self.watched.is_some_and(|until| until > now) {
            self.news.push(News::Ended(job.id().clone(), state));
        }
    }

    fn stand(&mut self, position: Position) -> i64 {
        match position {
            Position::At(at) => at,
            Position::Back => {
                self.back += 1;
                self.back
            }
            Position::Front => {
                // Starts at 0, and the back at 1: the two never meet.
                self.front -= 1;
                self.front + 1
            }
        }
    }

    /// When the next scheduled or retry job is due.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }
}
