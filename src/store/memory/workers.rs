//! What workers do. All but claim are fenced.

use super::{
    job::{Job, Place, Position},
    queue::Queue,
    verbs::ending,
};
use crate::{
    model::{Fence, Mode, State, StoreError, Timestamp, WorkerId},
    store::{
        Archive, Claim, Claimed, Complete, Ended, EndingReason, Failure, Held, Holder, Outcomes,
        Retry, Snooze, settle::cut_error,
    },
};
use std::time::Duration;

/// What a job says of its progress is at most so long.
const MAX_PROGRESS: usize = 4 << 10;

impl Queue {
    pub(super) fn claim(
        &mut self,
        worker: &WorkerId,
        count: usize,
        lease: Duration,
        now: Timestamp,
    ) -> Claim {
        let mut claim = Claim::default();
        if self.settings.paused || self.pending.is_empty() {
            return claim;
        }
        let fence = (self.fence + 1).max(now.as_millis().saturating_mul(1_000));
        let holder =
            Holder { worker: worker.clone(), fence: Fence(fence), lease_expires_at: now + lease };
        while claim.jobs.len() < count
            && let Some(id) = self.pending.values().next().cloned()
            && let Some(job) = self.take(&id)
        {
            match self.hand_over(job, &holder, now) {
                Ok(job) => claim.jobs.push(job),
                Err(ended) => claim.ended.push(ended),
            }
        }
        // Nobody has seen the fence of an empty claim.
        if !claim.jobs.is_empty() {
            self.fence = fence;
        }
        // Wake-ups chain: one worker each.
        self.wake |= !self.pending.is_empty();
        claim
    }

    /// Makes the lease, unless the job is not to run any more.
    fn hand_over(
        &mut self,
        mut job: Job,
        holder: &Holder,
        now: Timestamp,
    ) -> Result<Claimed, Ended> {
        if job.is_past(now) {
            return Err(self.ended(job, EndingReason::Expired, None, now));
        }
        if self.is_quarantined(job.envelope.fingerprint) {
            return Err(self.ended(job, EndingReason::Quarantined, None, now));
        }
        if let Some(Mode::Debounce { .. }) = job.mode() {
            self.free_key(&job);
        }
        job.place = Place::Active { holder: holder.clone(), progress: None };
        let claimed = Claimed {
            id: job.id().clone(),
            fence: holder.fence,
            attempt: job.attempt,
            crash: job.crash,
            lease_expires_at: holder.lease_expires_at,
            envelope: job.envelope.clone(),
            enqueued_at: job.enqueued_at,
        };
        self.put(job);
        Ok(claimed)
    }

    /// Takes a job out of its holder's hands, if it is in them. A lease that has run out counts
    /// until it is reclaimed.
    fn take_held(&mut self, held: &Held) -> Result<(Job, Holder), StoreError> {
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
        let (mut job, _) = self.take_held(held)?;
        if let Place::Active { holder, .. } = &mut job.place {
            holder.lease_expires_at = now + lease;
        }
        self.put(job);
        Ok(())
    }

    pub(super) fn progress(&mut self, held: &Held, text: &str) -> Result<(), StoreError> {
        if text.len() > MAX_PROGRESS {
            let (bytes, bound) = (format!("{} bytes", text.len()), "at most 4096 bytes");
            return Err(StoreError::invalid("progress", bytes, bound));
        }
        let (mut job, holder) = self.take_held(held)?;
        job.place = Place::Active { holder, progress: Some(text.to_owned()) };
        self.put(job);
        Ok(())
    }

    pub(super) fn complete(&mut self, done: &Complete, now: Timestamp) -> Result<(), StoreError> {
        let (job, holder) = self.take_held(&done.held)?;
        self.days.today(now).completed += 1;
        self.crashes.remove(&job.envelope.fingerprint);
        let (result, dropped) = done.kept_result();
        let reason = match dropped {
            true => EndingReason::CompletedWithoutResult,
            false => EndingReason::Completed,
        };
        let ending = ending(reason, Some(holder.worker), now);
        self.finish(job, State::Completed, ending, result.cloned());
        Ok(())
    }

    pub(super) fn retry(&mut self, failed: &Retry, now: Timestamp) -> Result<State, StoreError> {
        failed.check()?;
        let (mut job, holder) = self.take_held(&failed.held)?;
        self.days.today(now).failed += 1;
        job.attempt += 1;
        job.record_failure(Failure {
            at: now,
            attempt: Some(job.attempt),
            crash: None,
            worker: Some(holder.worker.to_string()),
            error: Some(cut_error(&failed.error)),
        });
        let due = now + failed.delay;
        if job.attempt >= job.envelope.max_attempts {
            let exhausted = ending(EndingReason::Exhausted, Some(holder.worker), now);
            self.finish(job, State::Archived, exhausted, None);
            return Ok(State::Archived);
        }
        if job.is_past(due) {
            return Ok(self.ended(job, EndingReason::Expired, Some(holder.worker), now).state);
        }
        job.place = Place::Retry { due };
        self.put(job);
        Ok(State::Retry)
    }

    pub(super) fn archive(&mut self, given_up: &Archive, now: Timestamp) -> Result<(), StoreError> {
        let (mut job, holder) = self.take_held(&given_up.held)?;
        self.days.today(now).failed += 1;
        if let Some(error) = &given_up.error {
            job.record_failure(Failure {
                at: now,
                attempt: None,
                crash: None,
                worker: Some(holder.worker.to_string()),
                error: Some(cut_error(error)),
            });
        }
        let ending = ending(given_up.reason.into(), Some(holder.worker), now);
        self.finish(job, State::Archived, ending, None);
        Ok(())
    }

    pub(super) fn snooze(&mut self, later: &Snooze, now: Timestamp) -> Result<(), StoreError> {
        later.check()?;
        let (mut job, _) = self.take_held(&later.held)?;
        job.place = Place::Scheduled { due: now + later.delay };
        self.put(job);
        Ok(())
    }

    /// Judged in order, put back in reverse: the first of the slice ends up first in its lane.
    pub(super) fn requeue(&mut self, held: &[Held]) -> Outcomes<()> {
        let mut back = Vec::with_capacity(held.len());
        let mut give_back = |held: &Held| self.take_held(held).map(|(job, _)| back.push(job));
        let outcomes = held.iter().map(&mut give_back).collect();
        for mut job in back.into_iter().rev() {
            job.place = Place::Pending(Position::Front);
            self.put(job);
        }
        outcomes
    }
}
