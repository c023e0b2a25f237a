//! The same operation on many jobs.

use super::Jobs;
use crate::{
    model::{JobId, QueueName, State, StoreError},
    store::{Change, Operation, Store},
};
use std::{collections::HashSet, sync::Arc};

/// Jobs of a slice unless told otherwise: little enough that workers hardly wait.
const SLICE: usize = 200;

/// An operation on all jobs of a state, slice by slice.
///
/// Each job is tried once, also if it comes back into the state meanwhile; for that their ids are
/// kept until the end, about 100 bytes a job. Jobs that enter the state while it goes on may be among
/// them or not. It may be broken off at any slice and begun anew: what was done has left the state.
#[derive(Debug)]
pub struct Bulk {
    store: Arc<dyn Store>,
    queue: QueueName,
    operation: Operation,
    jobs: Jobs,
    tried: HashSet<JobId>,
    /// This pass over the state found something new: what moved meanwhile needs another one.
    found: bool,
    ended: bool,
}

/// What was done to a slice of jobs, or to several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slice {
    /// Jobs that the operation changed.
    pub changed: u64,
    /// Jobs that somebody else had brought there already.
    pub unchanged: u64,
    /// Jobs that left the state meanwhile for one that forbids the operation, or are gone.
    pub left: u64,
    /// Jobs that were refused, such as a rerun whose unique key another holds, and why.
    pub refused: Vec<(JobId, StoreError)>,
}

impl Slice {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.left += other.left;
        self.refused.extend(other.refused);
    }
}

impl Bulk {
    pub(super) fn new(
        store: Arc<dyn Store>,
        queue: QueueName,
        operation: Operation,
        state: State,
    ) -> Result<Self, StoreError> {
        let there = operation.target() == Some(state);
        if !there && !operation.acts_on(state) {
            return Err(operation.forbidden(state));
        }
        let jobs = Jobs::new(store.clone(), queue.clone(), state).page_size(SLICE);
        let tried = HashSet::new();
        Ok(Self { store, queue, operation, jobs, tried, found: false, ended: there })
    }

    /// Those of one kind only.
    ///
    /// # Errors
    /// `Invalid` if the kind is none.
    pub fn kind(mut self, kind: impl AsRef<str>) -> Result<Self, StoreError> {
        self.jobs = self.jobs.kind(kind)?;
        Ok(self)
    }

    /// Jobs of a slice: 1 to 1,000, 200 by default.
    pub fn slice_size(mut self, jobs: usize) -> Self {
        self.jobs = self.jobs.page_size(jobs);
        self
    }

    /// Does the next slice; none when no job is left.
    ///
    /// # Errors
    /// `Unavailable` or `Backend` if a call failed: the next call goes on with the same slice.
    ///
    /// # Cancel safety
    /// Dropped, a slice may have been done or not; the next call goes on.
    pub async fn next_slice(&mut self) -> Result<Option<Slice>, StoreError> {
        while !self.ended {
            let mut ahead = self.jobs.clone();
            let Some(page) = ahead.next_page().await? else {
                self.jobs.rewind();
                self.ended = !std::mem::take(&mut self.found);
                continue;
            };
            let ids = page.into_iter().map(|job| job.id);
            let ids: Vec<JobId> = ids.filter(|id| !self.tried.contains(id)).collect();
            let outcomes = self.store.operate(&self.queue, self.operation, &ids).await?;
            self.jobs = ahead;
            if ids.is_empty() {
                continue;
            }
            let mut slice = Slice::default();
            for (id, outcome) in ids.iter().zip(outcomes) {
                match outcome {
                    Ok(Change::Changed) => slice.changed += 1,
                    Ok(Change::Unchanged) => slice.unchanged += 1,
                    Err(StoreError::NotFound(_)) => slice.left += 1,
                    Err(error) if Operation::is_forbidden(&error) => slice.left += 1,
                    Err(error) => slice.refused.push((id.clone(), error)),
                }
            }
            self.tried.extend(ids);
            self.found = true;
            return Ok(Some(slice));
        }
        Ok(None)
    }

    /// Does all that is left, and sums it up.
    ///
    /// # Errors
    /// As [`next_slice`](Bulk::next_slice); what was done before is not told.
    pub async fn run(mut self) -> Result<Slice, StoreError> {
        let mut sum = Slice::default();
        while let Some(slice) = self.next_slice().await? {
            sum.add(slice);
        }
        Ok(sum)
    }
}
