//! What operators do to jobs.

use super::{
    job::{Job, Place, Position},
    listeners::News,
    queue::Queue,
    verbs::ending,
};
use crate::{
    model::{JobId, State, StoreError, Timestamp},
    store::{Change, EndingReason, Operation},
};

impl Queue {
    pub(super) fn operate(
        &mut self,
        operation: Operation,
        id: &JobId,
        now: Timestamp,
    ) -> Result<Change, StoreError> {
        let absent = || StoreError::NotFound(format!("job {id}"));
        let job = self.jobs.get(id).ok_or_else(absent)?;
        let state = job.state();
        if operation.target() == Some(state) {
            return Ok(Change::Unchanged);
        }
        if !operation.acts_on(state) {
            return Err(operation.forbidden(state));
        }
        if operation == Operation::Rerun {
            self.check_rerun(job, now)?;
        }
        // Out of its holder's hands: the fence holds nothing from here on.
        let job = self.take(id).ok_or_else(absent)?;
        match operation {
            Operation::Cancel => self.end(job, State::Cancelled, now),
            Operation::Archive => self.end(job, State::Archived, now),
            Operation::Run => self.run(job),
            Operation::Rerun => self.rerun(job, now),
            Operation::Delete => {
                self.tell_end(&job, None, now);
                self.forget(job, now);
            }
        }
        Ok(Change::Changed)
    }

    fn end(&mut self, job: Job, state: State, now: Timestamp) {
        if let Some(fence) = job.holder().map(|holder| holder.fence) {
            self.news.push(News::Superseded(job.id().clone(), fence));
        }
        let worker = job.holder().map(|holder| holder.worker.clone());
        self.finish(job, state, ending(EndingReason::Operator, worker, now), None);
    }

    fn run(&mut self, mut job: Job) {
        job.place = Place::Pending(Position::Front);
        self.put(job);
    }

    /// The deadline, the quarantine, the unique key: in this order.
    fn check_rerun(&self, job: &Job, now: Timestamp) -> Result<(), StoreError> {
        if job.is_past(now) {
            let text = "deadline: is past; rerun needs one to come";
            return Err(StoreError::Invalid(text.to_owned()));
        }
        self.check_quarantine(job.envelope.fingerprint)?;
        match self.key_to_retake(job, now) {
            Some(holder) => {
                let existing_id = holder.to_string();
                Err(StoreError::Duplicate { existing_id, replaced: false })
            }
            None => Ok(()),
        }
    }

    /// From the start again, but for its failures and when it was enqueued.
    fn rerun(&mut self, mut job: Job, now: Timestamp) {
        (job.attempt, job.crash) = (0, 0);
        self.retake_key(&job, now);
        job.place = Place::Pending(Position::Back);
        self.put(job);
    }
}
