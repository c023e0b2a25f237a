//! One queue and what is in it. Every move of a job is a [`take`](Queue::take) and a
//! [`put`](Queue::put): nothing else touches the count, the lanes, the timers or the unique keys.

use super::job::{Finished, Job, Place, Position};
use crate::{
    model::{JobId, QueueName, State, StoreError, Timestamp, record::unique_token},
    store::{JobInfo, QueueInfo},
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
    /// When the lease of an active job ends.
    pub(super) leases: Timer,
    /// When a finished job is evicted.
    pub(super) evictions: Timer,
    /// Which unfinished job holds a unique key.
    pub(super) unique: HashMap<String, JobId>,
    pub(super) unfinished: u64,
    pub(super) limit: Option<u64>,
    /// The last fence.
    pub(super) fence: u64,
    /// The last sweep that reclaimed and evicted.
    pub(super) swept_at: Option<Timestamp>,
    /// Something was written into it: it exists.
    pub(super) made: bool,
    /// A wake token is to be left.
    pub(super) wake: bool,
    front: i64,
    back: i64,
    today: Today,
}

/// Counters of one UTC day.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Today {
    day: u64,
    pub(super) completed: u64,
    pub(super) failed: u64,
}

impl Queue {
    /// Takes a job out of its place; an unfinished one gives its unique key back.
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
            Place::Active(holder) => {
                self.leases.remove(&(holder.lease_expires_at, id.clone()));
            }
            Place::Finished(Finished { evicted_at, .. }) => {
                self.evictions.remove(&(*evicted_at, id.clone()));
            }
        }
        if job.state().is_unfinished() {
            self.unfinished -= 1;
            unique_token(&job.envelope).map(|token| self.unique.remove(&token));
        }
        Some(job)
    }

    /// Puts a job into its place; an unfinished one holds its unique key.
    pub(super) fn put(&mut self, mut job: Job) {
        let id = job.envelope.id.clone();
        match &mut job.place {
            Place::Pending(position) => {
                let at = self.stand(*position);
                *position = Position::At(at);
                self.pending.insert((Reverse(job.envelope.priority), at), id.clone());
                self.wake = true;
            }
            Place::Scheduled { due } | Place::Retry { due } => {
                // Whoever sleeps until the next due time has to sleep less.
                self.wake |= self.due.first().is_none_or(|(first, _)| *due < *first);
                self.due.insert((*due, id.clone()));
            }
            Place::Active(holder) => {
                self.leases.insert((holder.lease_expires_at, id.clone()));
            }
            Place::Finished(finished) => {
                self.evictions.insert((finished.evicted_at, id.clone()));
            }
        }
        if job.state().is_unfinished() {
            self.unfinished += 1;
            unique_token(&job.envelope).map(|token| self.unique.insert(token, id.clone()));
        }
        self.made = true;
        self.jobs.insert(id, job);
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

    /// The counters of the day.
    pub(super) fn today(&mut self, now: Timestamp) -> &mut Today {
        self.today = self.today.on(day(now));
        &mut self.today
    }

    pub(super) fn show(&self, id: &JobId) -> Result<JobInfo, StoreError> {
        let absent = || StoreError::NotFound(format!("job {id}"));
        self.jobs.get(id).map(Job::info).ok_or_else(absent)
    }

    pub(super) fn info(&self, name: &QueueName, now: Timestamp) -> Result<QueueInfo, StoreError> {
        if !self.made {
            return Err(StoreError::NotFound(format!("queue {name}")));
        }
        let count = |state| self.jobs.values().filter(|job| job.state() == state).count() as u64;
        let today = self.today.on(day(now));
        Ok(QueueInfo {
            queue: name.to_string(),
            pending: count(State::Pending),
            scheduled: count(State::Scheduled),
            active: count(State::Active),
            retry: count(State::Retry),
            completed: count(State::Completed),
            archived: count(State::Archived),
            cancelled: count(State::Cancelled),
            quarantined: count(State::Quarantined),
            unfinished: self.unfinished,
            limit: self.limit,
            paused: false,
            oldest_pending_ms: self.oldest_pending(now),
            completed_today: today.completed,
            failed_today: today.failed,
        })
    }

    /// The longest wait among the jobs that are next in their lanes.
    fn oldest_pending(&self, now: Timestamp) -> Option<u64> {
        let next = |lane| {
            let mut lane =
                self.pending.range((Reverse(lane), i64::MIN)..=(Reverse(lane), i64::MAX));
            self.jobs.get(lane.next()?.1)
        };
        let waited = |job: &Job| now.as_millis().saturating_sub(job.ready_at().as_millis());
        (0..=9).filter_map(next).map(waited).max()
    }
}

impl Today {
    /// These counters if they are of that day, else new ones.
    fn on(self, day: u64) -> Self {
        if self.day == day { self } else { Self { day, ..Self::default() } }
    }
}

/// Days since 1970-01-01, UTC.
fn day(now: Timestamp) -> u64 {
    now.as_millis() / (24 * 3600 * 1000)
}
