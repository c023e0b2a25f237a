//! The verbs: DESIGN's table of states, a function per row or two.
//!
//! | verb | from | to |
//! |---|---|---|
//! | `enqueue` | – | pending, or scheduled if due later |
//! | `claim` | pending | active |
//! | `extend` | active | active |
//! | `complete` | active | completed, or gone without retention |
//! | `retry` | active | retry, or archived at the last attempt |
//! | `archive` | active | archived |
//! | `snooze` | active | scheduled |
//! | `requeue` | active | pending, front |
//! | `promote` | scheduled, retry | pending, back |
//! | `reclaim` | active | pending, back; from the second crash on retry |
//! | `evict` | completed, archived, cancelled | – |
//! | `cancel` | pending, scheduled, active, retry | cancelled |

use super::{
    job::{Finished, Job, Place, Position, due_later},
    queue::Queue,
};
use crate::{
    model::{
        Envelope, Fence, Fingerprint, JobId, MAX_DURATION, State, StoreError, Timestamp, WorkerId,
        record::unique_token,
    },
    store::{
        ARCHIVED_RETENTION, Archive, ArchiveReason, BatchError, CANCELLED_RETENTION, CRASH_BACKOFF,
        Change, Claimed, Complete, Ending, EndingReason, Enqueued, Failure, Held, Holder, Outcomes,
        Pace, Retry, Snooze, Swept, settle::cut_error,
    },
};
use bytes::Bytes;
use std::{collections::HashMap, time::Duration};

/// How long a shared sweep leaves reclaim and evict to the last one.
const GATE: Duration = Duration::from_secs(1);

/// The jobs of an atomic batch that were judged good and are not yet written.
#[derive(Default)]
struct Batch<'a> {
    ids: HashMap<&'a JobId, &'a Envelope>,
    keys: HashMap<String, &'a JobId>,
}

impl<'a> Batch<'a> {
    fn add(&mut self, job: &'a Envelope) {
        self.ids.insert(&job.id, job);
        unique_token(job).map(|token| self.keys.insert(token, &job.id));
    }
}

/// Enqueue.
impl Queue {
    pub(super) fn enqueue(
        &mut self,
        job: &Envelope,
        now: Timestamp,
    ) -> Result<Enqueued, StoreError> {
        match self.judge(job, &Batch::default(), now)? {
            Some(existing) => Ok(existing),
            None => {
                self.admit(job, 1)?;
                Ok(self.write(job, now))
            }
        }
    }

    pub(super) fn enqueue_atomic(
        &mut self,
        jobs: &[Envelope],
        now: Timestamp,
    ) -> Result<Vec<Enqueued>, BatchError> {
        let mut batch = Batch::default();
        let mut existing = Vec::with_capacity(jobs.len());
        for (index, job) in jobs.iter().enumerate() {
            let offends = |error| BatchError { index: Some(index), error };
            let found = self.judge(job, &batch, now).map_err(offends)?;
            if found.is_none() {
                batch.add(job);
            }
            existing.push(found);
        }
        if let Some(job) = jobs.first() {
            self.admit(job, batch.ids.len() as u64)?;
        }
        let mut answer = |(job, existing): (&Envelope, Option<Enqueued>)| {
            existing.unwrap_or_else(|| self.write(job, now))
        };
        Ok(jobs.iter().zip(existing).map(&mut answer).collect())
    }

    /// First the id, then the unique key: *existing*, an offence, or nothing against it.
    fn judge(
        &self,
        job: &Envelope,
        batch: &Batch<'_>,
        now: Timestamp,
    ) -> Result<Option<Enqueued>, StoreError> {
        if let Some((fingerprint, state)) = self.owner(&job.id, batch, now) {
            if fingerprint != job.fingerprint {
                return Err(StoreError::IdConflict { job_id: job.id.to_string() });
            }
            return Ok(Some(Enqueued { id: job.id.clone(), state, existing: true }));
        }
        let Some(token) = unique_token(job) else { return Ok(None) };
        match self.unique.get(&token).or(batch.keys.get(&token).copied()) {
            Some(holder) => {
                Err(StoreError::Duplicate { existing_id: holder.to_string(), replaced: false })
            }
            None => Ok(None),
        }
    }

    /// Content and state of the job that owns an id.
    fn owner(&self, id: &JobId, batch: &Batch<'_>, now: Timestamp) -> Option<(Fingerprint, State)> {
        if let Some(job) = self.jobs.get(id) {
            return Some((job.envelope.fingerprint, job.state()));
        }
        let job = batch.ids.get(id)?;
        let later = due_later(job, now).is_some();
        Some((job.fingerprint, if later { State::Scheduled } else { State::Pending }))
    }

    /// Backpressure: never above the limit. Nothing incoming is no offence.
    fn admit(&self, job: &Envelope, incoming: u64) -> Result<(), StoreError> {
        match self.limit {
            Some(limit) if incoming > 0 && self.unfinished + incoming > limit => {
                let queue = job.queue.to_string();
                Err(StoreError::Backpressure { queue, limit, current: self.unfinished, incoming })
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, job: &Envelope, now: Timestamp) -> Enqueued {
        let job = Job::new(job, now);
        let enqueued =
            Enqueued { id: job.envelope.id.clone(), state: job.state(), existing: false };
        self.put(job);
        enqueued
    }
}

/// What workers do. All but claim are fenced.
impl Queue {
    pub(super) fn claim(
        &mut self,
        worker: &WorkerId,
        count: usize,
        lease: Duration,
        now: Timestamp,
    ) -> Vec<Claimed> {
        let next: Vec<JobId> = self.pending.values().take(count).cloned().collect();
        if next.is_empty() {
            return Vec::new();
        }
        self.fence = (self.fence + 1).max(now.as_millis().saturating_mul(1_000));
        let holder = Holder {
            worker: worker.clone(),
            fence: Fence(self.fence),
            lease_expires_at: now + lease,
        };
        let jobs = next.iter().filter_map(|id| self.hand_over(id, &holder)).collect();
        // Wake-ups chain: one worker each.
        self.wake |= !self.pending.is_empty();
        jobs
    }

    fn hand_over(&mut self, id: &JobId, holder: &Holder) -> Option<Claimed> {
        let mut job = self.take(id)?;
        job.place = Place::Active(holder.clone());
        let claimed = Claimed {
            id: id.clone(),
            fence: holder.fence,
            attempt: job.attempt,
            crash: job.crash,
            lease_expires_at: holder.lease_expires_at,
            envelope: Ok((job.envelope.clone(), job.enqueued_at)),
        };
        self.put(job);
        Some(claimed)
    }

    /// Takes a job out of its holder's hands, if it is in them. A lease that has run out counts
    /// until it is reclaimed.
    fn release(&mut self, held: &Held) -> Result<(Job, Holder), StoreError> {
        let rejected = || StoreError::LeaseRejected { job_id: held.id.to_string() };
        let holder = self.jobs.get(&held.id).and_then(Job::holder);
        let holder =
            holder.filter(|holder| holder.fence == held.fence).cloned().ok_or_else(rejected)?;
        let job = self.take(&held.id).ok_or_else(rejected)?;
        Ok((job, holder))
    }

    pub(super) fn extend(
        &mut self,
        held: &Held,
        lease: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (mut job, holder) = self.release(held)?;
        job.place = Place::Active(Holder { lease_expires_at: now + lease, ..holder });
        self.put(job);
        Ok(())
    }

    pub(super) fn complete(&mut self, done: &Complete, now: Timestamp) -> Result<(), StoreError> {
        let (job, holder) = self.release(&done.held)?;
        self.today(now).completed += 1;
        if job.envelope.retention.is_none() {
            return Ok(());
        }
        let (result, dropped) = done.kept_result();
        let reason = match dropped {
            true => EndingReason::CompletedWithoutResult,
            false => EndingReason::Completed,
        };
        let ending = Ending { reason, at: now, worker: Some(holder.worker) };
        self.finish(job, State::Completed, ending, result.cloned());
        Ok(())
    }

    pub(super) fn retry(&mut self, failed: &Retry, now: Timestamp) -> Result<State, StoreError> {
        failed.check()?;
        let (mut job, holder) = self.release(&failed.held)?;
        self.today(now).failed += 1;
        job.attempt += 1;
        job.record_failure(Failure {
            at: now,
            attempt: Some(job.attempt),
            crash: None,
            worker: Some(holder.worker.to_string()),
            error: Some(cut_error(&failed.error)),
        });
        if job.attempt < job.envelope.max_attempts {
            job.place = Place::Retry { due: now + failed.delay };
            self.put(job);
            return Ok(State::Retry);
        }
        let reason = EndingReason::Exhausted;
        let ending = Ending { reason, at: now, worker: Some(holder.worker) };
        self.finish(job, State::Archived, ending, None);
        Ok(State::Archived)
    }

    pub(super) fn archive(&mut self, given_up: &Archive, now: Timestamp) -> Result<(), StoreError> {
        let (mut job, holder) = self.release(&given_up.held)?;
        self.today(now).failed += 1;
        if let Some(error) = &given_up.error {
            job.record_failure(Failure {
                at: now,
                attempt: None,
                crash: None,
                worker: Some(holder.worker.to_string()),
                error: Some(cut_error(error)),
            });
        }
        let reason = match given_up.reason {
            ArchiveReason::Discarded => EndingReason::Discarded,
            ArchiveReason::Undecodable => EndingReason::Undecodable,
        };
        let ending = Ending { reason, at: now, worker: Some(holder.worker) };
        self.finish(job, State::Archived, ending, None);
        Ok(())
    }

    pub(super) fn snooze(&mut self, later: &Snooze, now: Timestamp) -> Result<(), StoreError> {
        later.check()?;
        let (mut job, _) = self.release(&later.held)?;
        job.place = Place::Scheduled { due: now + later.delay };
        self.put(job);
        Ok(())
    }

    /// Judged in order, put back in reverse: the first of the slice ends up first in its lane.
    pub(super) fn requeue(&mut self, held: &[Held]) -> Outcomes<()> {
        let mut back = Vec::with_capacity(held.len());
        let mut give_back = |held: &Held| self.release(held).map(|(job, _)| back.push(job));
        let outcomes = held.iter().map(&mut give_back).collect();
        for mut job in back.into_iter().rev() {
            job.place = Place::Pending(Position::Front);
            self.put(job);
        }
        outcomes
    }

    /// Keeps a job that has ended for as long as its state and its retention say.
    fn finish(&mut self, mut job: Job, state: State, ending: Ending, result: Option<Bytes>) {
        let least = match state {
            State::Archived => ARCHIVED_RETENTION,
            State::Cancelled => CANCELLED_RETENTION,
            _ => Duration::ZERO,
        };
        let kept = job.envelope.retention.unwrap_or_default().max(least);
        let evicted_at = ending.at + kept;
        job.place = Place::Finished(Finished { state, ending, result, evicted_at });
        self.put(job);
    }
}

/// What time does.
impl Queue {
    pub(super) fn sweep(&mut self, pace: Pace, now: Timestamp) -> Swept {
        let mut swept = Swept { promoted: self.promote(now), ..Swept::default() };
        if pace == Pace::Now || self.swept_at.is_none_or(|last| now >= last + GATE) {
            self.swept_at = Some(now);
            swept.reclaimed = self.reclaim(now);
            swept.evicted = self.evict(now);
        }
        swept.claimable = !self.pending.is_empty();
        let until = |due: &Timestamp| Duration::from_millis(due.as_millis() - now.as_millis());
        swept.next_due = self.due.first().map(|(due, _)| until(due));
        swept
    }

    fn promote(&mut self, now: Timestamp) -> u64 {
        let mut promoted = 0;
        while let Some((_, id)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            let Some(mut job) = self.take(&id) else { break };
            job.place = Place::Pending(Position::Back);
            self.put(job);
            promoted += 1;
        }
        promoted
    }

    fn reclaim(&mut self, now: Timestamp) -> u64 {
        let mut reclaimed = 0;
        while let Some((_, id)) = self.leases.first().filter(|(end, _)| *end <= now).cloned() {
            let Some(mut job) = self.take(&id) else { break };
            job.crash += 1;
            job.record_failure(Failure {
                at: now,
                attempt: None,
                crash: Some(job.crash),
                worker: job.holder().map(|holder| holder.worker.to_string()),
                error: None,
            });
            job.place = match job.crash {
                1 => Place::Pending(Position::Back),
                crash => Place::Retry { due: now + crash_backoff(crash) },
            };
            self.put(job);
            reclaimed += 1;
        }
        reclaimed
    }

    fn evict(&mut self, now: Timestamp) -> u64 {
        let mut evicted = 0;
        while let Some((_, id)) = self.evictions.first().filter(|(end, _)| *end <= now).cloned() {
            if self.take(&id).is_none() {
                break;
            }
            evicted += 1;
        }
        evicted
    }
}

/// What operators do.
impl Queue {
    pub(super) fn cancel(&mut self, id: &JobId, now: Timestamp) -> Result<Change, StoreError> {
        match self.jobs.get(id).map(Job::state) {
            None => Err(StoreError::NotFound(format!("job {id}"))),
            Some(State::Cancelled) => Ok(Change::Unchanged),
            Some(state) if !state.is_unfinished() => Err(StoreError::Invalid(format!(
                "state: job is {state}; cancel needs an unfinished job"
            ))),
            Some(_) => {
                // Out of its holder's hands: the fence holds nothing from here on.
                let Some(job) = self.take(id) else { return Ok(Change::Unchanged) };
                let worker = job.holder().map(|holder| holder.worker.clone());
                let ending = Ending { reason: EndingReason::Operator, at: now, worker };
                self.finish(job, State::Cancelled, ending, None);
                Ok(Change::Changed)
            }
        }
    }

    pub(super) fn set_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
        self.made = true;
        self.wake = true;
    }
}

/// 5 s × 4^(crash − 2) ± 50 %, at most 10 years.
fn crash_backoff(crash: u32) -> Duration {
    let factor = 4u32.saturating_pow(crash.saturating_sub(2));
    let base = CRASH_BACKOFF.saturating_mul(factor).min(MAX_DURATION);
    let millis = base.as_millis() as u64;
    Duration::from_millis(millis / 2 + fastrand::u64(0..=millis)).min(MAX_DURATION)
}
