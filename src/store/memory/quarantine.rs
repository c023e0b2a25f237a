//! Fingerprints that killed their workers.

use super::{
    job::{Job, Place, Position},
    queue::Queue,
    verbs::ending,
};
use crate::{
    model::{Fence, Fingerprint, JobId, State, StoreError, Timestamp},
    store::{Change, EndingReason, Holder, Quarantine, Released, settle::cut_error},
};

/// Crashes of a fingerprint in one window.
#[derive(Debug)]
pub(super) struct Crashes {
    count: u32,
    /// When the one was counted that counted last.
    last: Timestamp,
    window_ends: Timestamp,
}

impl Crashes {
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.window_ends <= now
    }

    /// One death is one crash: jobs that were claimed before it died with the same worker.
    fn counts(&self, fence: Fence) -> bool {
        fence.0 > self.last.as_millis().saturating_mul(1_000)
    }
}

impl Queue {
    /// Counts the crash of a fingerprint, if it is one; the crashes in this window.
    pub(super) fn count_crash(
        &mut self,
        fingerprint: Fingerprint,
        fence: Fence,
        now: Timestamp,
    ) -> u32 {
        let first =
            Crashes { count: 1, last: now, window_ends: now + self.settings.crash_window() };
        match self.crashes.get_mut(&fingerprint).filter(|crashes| !crashes.is_over(now)) {
            Some(crashes) => {
                if crashes.counts(fence) {
                    (crashes.count, crashes.last) = (crashes.count + 1, now);
                }
                crashes.count
            }
            None => self.crashes.entry(fingerprint).insert_entry(first).get().count,
        }
    }

    /// Closes a fingerprint that crashed too often, unless it is closed.
    pub(super) fn close_crashed(
        &mut self,
        job: &Job,
        holder: &Holder,
        crashes: u32,
        now: Timestamp,
    ) {
        let (fingerprint, window) = (job.envelope.fingerprint, self.settings.crash_window());
        self.quarantine.entry(fingerprint).or_insert_with(|| {
            let sample_id = Some(job.id().clone());
            let worker = Some(holder.worker.clone());
            let reason = None;
            Quarantine { fingerprint, since: now, crashes, sample_id, worker, reason }
                .for_crashes(Some(window))
        });
    }

    pub(super) fn is_quarantined(&self, fingerprint: Fingerprint) -> bool {
        self.quarantine.contains_key(&fingerprint)
    }

    pub(super) fn check_quarantine(&self, fingerprint: Fingerprint) -> Result<(), StoreError> {
        match self.is_quarantined(fingerprint) {
            true => Err(StoreError::Quarantined { fingerprint: fingerprint.to_string() }),
            false => Ok(()),
        }
    }
}

/// What operators do.
impl Queue {
    /// Moves no job: a claim does that when it meets one.
    pub(super) fn quarantine(
        &mut self,
        fingerprint: Fingerprint,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Change {
        if self.is_quarantined(fingerprint) {
            return Change::Unchanged;
        }
        let reason = reason.map(cut_error);
        let (crashes, sample_id, worker) = (0, None, None);
        let entry = Quarantine { fingerprint, since: now, crashes, sample_id, worker, reason };
        self.quarantine.insert(fingerprint, entry);
        self.made = true;
        Change::Changed
    }

    /// First opens the fingerprint, then moves its jobs.
    pub(super) fn release(
        &mut self,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Released, StoreError> {
        let waiting = self.quarantined_jobs(fingerprint);
        if self.quarantine.remove(&fingerprint).is_none() && waiting.is_empty() {
            return Err(StoreError::NotFound(format!("fingerprint {fingerprint}")));
        }
        self.crashes.remove(&fingerprint);
        let mut released = Released::default();
        for job in waiting.iter().filter_map(|id| self.take(id)).collect::<Vec<_>>() {
            match self.come_back(job, now) {
                State::Pending => released.released += 1,
                _ => released.archived += 1,
            }
        }
        Ok(released)
    }

    /// Pending again, with its unique key; archived if another job holds that now.
    fn come_back(&mut self, mut job: Job, now: Timestamp) -> State {
        job.crash = 0;
        if self.key_to_retake(&job, now).is_some() {
            let taken = ending(EndingReason::UniqueKeyTaken, None, now);
            self.finish(job, State::Archived, taken, None);
            return State::Archived;
        }
        self.retake_key(&job, now);
        job.place = Place::Pending(Position::Back);
        self.put(job);
        State::Pending
    }

    /// The oldest first.
    fn quarantined_jobs(&self, fingerprint: Fingerprint) -> Vec<JobId> {
        let here = |id: &&JobId| {
            self.jobs.get(*id).is_some_and(|job| {
                job.state() == State::Quarantined && job.envelope.fingerprint == fingerprint
            })
        };
        self.evictions.iter().map(|(_, id)| id).filter(here).cloned().collect()
    }

    pub(super) fn quarantines(&self) -> Vec<Quarantine> {
        let mut all: Vec<_> = self.quarantine.values().cloned().collect();
        all.sort_by(|a, b| a.fingerprint.as_str().cmp(b.fingerprint.as_str()));
        all
    }
}
