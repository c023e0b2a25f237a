//! What producers do.

use super::{
    job::{Job, due_later, moment},
    queue::Queue,
};
use crate::{
    model::{Envelope, Fingerprint, JobId, State, StoreError, Timestamp, record::unique_token},
    store::{BatchError, Enqueued},
};
use std::collections::HashMap;

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

/// What a job is, if nothing forbids it.
enum Judged {
    Existing(Enqueued),
    /// The unique key is held by this job.
    Held(JobId),
    New,
}

fn duplicate(holder: &JobId, replaced: bool) -> StoreError {
    StoreError::Duplicate { existing_id: holder.to_string(), replaced }
}

impl Queue {
    pub(super) fn enqueue(
        &mut self,
        job: &Envelope,
        now: Timestamp,
    ) -> Result<Enqueued, StoreError> {
        match self.judge(job, &Batch::default(), now)? {
            Judged::Existing(existing) => Ok(existing),
            Judged::Held(holder) => {
                let replaced = self.replace(&holder, job, now);
                Err(duplicate(&holder, replaced))
            }
            Judged::New => {
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
            match self.judge(job, &batch, now).map_err(offends)? {
                Judged::Existing(found) => existing.push(Some(found)),
                Judged::Held(holder) => return Err(offends(duplicate(&holder, false))),
                Judged::New => {
                    batch.add(job);
                    existing.push(None);
                }
            }
        }
        if let Some(job) = jobs.first() {
            self.admit(job, batch.ids.len() as u64)?;
        }
        let mut answer = |(job, existing): (&Envelope, Option<Enqueued>)| {
            existing.unwrap_or_else(|| self.write(job, now))
        };
        Ok(jobs.iter().zip(existing).map(&mut answer).collect())
    }

    /// The id, the deadline, the quarantine, the unique key: in this order.
    fn judge(
        &self,
        job: &Envelope,
        batch: &Batch<'_>,
        now: Timestamp,
    ) -> Result<Judged, StoreError> {
        if let Some((content, state)) = self.owner(&job.id, batch, now) {
            if content != job.fingerprint {
                return Err(StoreError::IdConflict { job_id: job.id.to_string() });
            }
            return Ok(Judged::Existing(Enqueued { id: job.id.clone(), state, existing: true }));
        }
        if job.deadline.is_some_and(|deadline| moment(deadline, now) <= now) {
            return Err(StoreError::Invalid("deadline: is past by the store's clock".to_owned()));
        }
        self.check_quarantine(job.fingerprint)?;
        let Some(token) = unique_token(job) else { return Ok(Judged::New) };
        let holder = self.key_holder(&token, now).or(batch.keys.get(&token).copied());
        Ok(holder.map_or(Judged::New, |holder| Judged::Held(holder.clone())))
    }

    /// First content and state of the job that owns an id; no state if the job is gone and
    /// remembered.
    fn owner(
        &self,
        id: &JobId,
        batch: &Batch<'_>,
        now: Timestamp,
    ) -> Option<(Fingerprint, Option<State>)> {
        if let Some(job) = self.jobs.get(id) {
            return Some((job.content, Some(job.state())));
        }
        if let Some(gone) = self.remembered.get(id).filter(|gone| gone.until > now) {
            return Some((gone.content, None));
        }
        let job = batch.ids.get(id)?;
        let later = due_later(job, now).is_some();
        Some((job.fingerprint, Some(if later { State::Scheduled } else { State::Pending })))
    }

    /// Backpressure: never above the limit. Nothing incoming is no offence.
    fn admit(&self, job: &Envelope, incoming: u64) -> Result<(), StoreError> {
        match self.settings.limit {
            Some(limit) if incoming > 0 && self.unfinished + incoming > limit => {
                let queue = job.queue.to_string();
                Err(StoreError::Backpressure { queue, limit, current: self.unfinished, incoming })
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, job: &Envelope, now: Timestamp) -> Enqueued {
        let job = Job::new(job, now);
        let enqueued = Enqueued { id: job.id().clone(), state: Some(job.state()), existing: false };
        self.take_key(&job, now);
        self.put(job);
        enqueued
    }
}
