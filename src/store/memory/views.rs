//! What a queue tells of itself. Looking changes nothing.

use super::{
    job::{Job, Place, Position},
    queue::Queue,
};
use crate::{
    model::{JobId, Kind, QueueName, State, StoreError, Timestamp},
    store::{JobInfo, Page, QueueInfo},
};
use std::cmp::Reverse;

impl Queue {
    pub(super) fn show(&self, id: &JobId) -> Result<JobInfo, StoreError> {
        let absent = || StoreError::NotFound(format!("job {id}"));
        self.jobs.get(id).map(Job::info).ok_or_else(absent)
    }

    pub(super) fn check_made(&self, name: &QueueName) -> Result<(), StoreError> {
        match self.made {
            true => Ok(()),
            false => Err(StoreError::NotFound(format!("queue {name}"))),
        }
    }

    pub(super) fn info(&self, name: &QueueName, now: Timestamp) -> Result<QueueInfo, StoreError> {
        self.check_made(name)?;
        let count = |state| self.jobs.values().filter(|job| job.state() == state).count() as u64;
        let today = self.days.last(1, now).pop().unwrap_or_default();
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
            limit: self.settings.limit,
            paused: self.settings.paused,
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

    pub(super) fn list(
        &self,
        state: State,
        kind: Option<&Kind>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let after = cursor.map(Spot::read).transpose()?;
        let listed =
            |job: &&Job| job.state() == state && kind.is_none_or(|kind| job.envelope.kind == *kind);
        let mut jobs: Vec<(Spot, &Job)> =
            self.jobs.values().filter(listed).map(|job| (Spot::of(job), job)).collect();
        jobs.retain(|(spot, _)| after.as_ref().is_none_or(|after| spot > after));
        jobs.sort_by(|(a, _), (b, _)| a.cmp(b));
        let more = jobs.len() > limit;
        jobs.truncate(limit);
        let last = jobs.last().filter(|_| more).map(|(spot, _)| spot.to_string());
        Ok(Page { jobs: jobs.iter().map(|(_, job)| job.listed()).collect(), cursor: last })
    }
}

/// Where a job stands among those of its state. The cursor is that of the last one seen.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    /// A pending job's lane, the first one first; 0 for the others.
    lane: u8,
    /// Its place in the lane, or a time in ms.
    at: i64,
    id: String,
}

impl Spot {
    fn of(job: &Job) -> Self {
        let (lane, at) = match (&job.place, job.listed().at) {
            (Place::Pending(Position::At(at)), _) => (9 - job.envelope.priority, *at),
            (_, at) => (0, at.map_or(0, |at| at.as_millis().cast_signed())),
        };
        Self { lane, at, id: job.id().to_string() }
    }

    fn read(cursor: &str) -> Result<Self, StoreError> {
        let mut parts = cursor.splitn(3, '/');
        let mut next = || parts.next().unwrap_or_default();
        match (next().parse(), next().parse(), next()) {
            (Ok(lane), Ok(at), id) => Ok(Self { lane, at, id: id.to_owned() }),
            _ => {
                let given = format!("{} bytes", cursor.len());
                Err(StoreError::invalid("cursor", given, "one that a page gave"))
            }
        }
    }
}

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.lane, self.at, self.id)
    }
}
