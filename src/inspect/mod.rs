//! The operator's face: looks at queues and jobs, and steers them.

mod bulk;
mod jobs;
mod quarantine;
#[cfg(test)]
mod tests;

pub use bulk::{Bulk, Slice};
pub use jobs::Jobs;

use crate::{
    Client,
    model::{JobId, QueueName, State, StoreError, WorkerId},
    store::{Change, Day, JobInfo, Operation, QueueInfo, Setting, Store, Wish, WorkerInfo},
};
use std::sync::Arc;

/// Queues that are asked for their counters at a time.
const LOOKUPS: usize = 32;

/// Looks and steers. Cheap to clone; made by [`Client::inspector`].
///
/// ```
/// use sprag::{Client, Job, State, store::Operation};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendWelcome { user: u64 }
/// impl Job for SendWelcome {
///     const KIND: &'static str = "email:welcome";
///     const QUEUE: &'static str = "email";
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), sprag::StoreError> {
/// let client = Client::connect("memory://")?;
/// let inspector = client.inspector();
/// client.enqueue_many((1..=3).map(|user| SendWelcome { user })).await?;
/// inspector.pause("email").await?;
/// assert_eq!(inspector.queue("email").await?.pending, 3);
///
/// // All jobs of a state and kind, a slice at a time.
/// let bulk = inspector.bulk("email", Operation::Cancel, State::Pending)?;
/// let mut bulk = bulk.kind("email:welcome")?;
/// while let Some(slice) = bulk.next_slice().await? {
///     assert_eq!((slice.changed, slice.refused.len()), (3, 0));
/// }
/// assert_eq!(inspector.queue("email").await?.cancelled, 3);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Every method: `Invalid` if a name or number is out of bounds, before anything is sent;
/// `Unavailable` or `Backend` if the call failed.
///
/// # Cancel safety
/// Dropping a future loses the answer; the call may have been applied. Each call may be repeated:
/// what is done already is told as [`Change::Unchanged`], and of a deleted job or queue `NotFound`.
#[derive(Debug, Clone)]
pub struct Inspector {
    store: Arc<dyn Store>,
}

impl Client {
    /// Looks at this client's queues and steers them.
    pub fn inspector(&self) -> Inspector {
        Inspector { store: self.store().clone() }
    }
}

impl Inspector {
    /// Works on a store of the caller's own.
    pub fn new(store: impl Store + 'static) -> Self {
        Self { store: Arc::new(store) }
    }

    /// The queues of the namespace with their counters, sorted by name. Each is exact at a moment
    /// of its own; one that is deleted meanwhile is left out.
    ///
    /// # Errors
    /// See [`Inspector`].
    pub async fn queues(&self) -> Result<Vec<QueueInfo>, StoreError> {
        self.each_queue().await?.into_iter().map(|(_, found)| found).collect()
    }

    /// As [`queues`](Inspector::queues), each with an answer of its own: a queue that is damaged
    /// hides no other.
    ///
    /// # Errors
    /// See [`Inspector`]; here, if the queues' names cannot be had.
    pub async fn each_queue(
        &self,
    ) -> Result<Vec<(QueueName, Result<QueueInfo, StoreError>)>, StoreError> {
        let names = self.store.queues().await?;
        let mut queues = Vec::with_capacity(names.len());
        for slice in names.chunks(LOOKUPS) {
            let lookups = slice.iter().map(|name| self.store.queue(name));
            let found = futures_util::future::join_all(lookups).await;
            let there = |(_, found): &(_, _)| !matches!(found, Err(StoreError::NotFound(_)));
            queues.extend(slice.iter().cloned().zip(found).filter(there));
        }
        Ok(queues)
    }

    /// The workers that were heard of within the hour, sorted by id; those silent for 60 s are told
    /// to be gone.
    ///
    /// # Errors
    /// See [`Inspector`].
    pub async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        self.store.workers().await
    }

    /// Asks a worker to claim nothing more; jobs that it runs go on. There is no way back.
    ///
    /// # Errors
    /// `NotFound` if the worker is not on the list.
    pub async fn quiet(&self, worker: impl AsRef<str>) -> Result<(), StoreError> {
        self.ask(worker, Wish::Quiet).await
    }

    /// Asks a worker to claim nothing more and to end, as by SIGTERM.
    ///
    /// # Errors
    /// `NotFound` if the worker is not on the list.
    pub async fn stop(&self, worker: impl AsRef<str>) -> Result<(), StoreError> {
        self.ask(worker, Wish::Stop).await
    }

    /// Asks a worker: it is told at once, or, should that be lost, at its next heartbeat.
    ///
    /// # Errors
    /// `NotFound` if the worker is not on the list.
    pub async fn ask(&self, worker: impl AsRef<str>, wish: Wish) -> Result<(), StoreError> {
        self.store.ask(&WorkerId::new(worker)?, wish).await
    }

    /// A queue's counters, exact at one moment.
    ///
    /// # Errors
    /// `NotFound` if nobody has made it.
    pub async fn queue(&self, queue: impl AsRef<str>) -> Result<QueueInfo, StoreError> {
        self.store.queue(&QueueName::new(queue)?).await
    }

    /// What happened on the last so many days (1 to 90, UTC), today first.
    ///
    /// # Errors
    /// See [`Inspector`]; days of a queue that nobody has made are all zero.
    pub async fn days(&self, queue: impl AsRef<str>, days: u32) -> Result<Vec<Day>, StoreError> {
        self.store.days(&QueueName::new(queue)?, days).await
    }

    /// Lets nothing be claimed. Jobs that run go on; enqueue is not touched. Makes the queue if need
    /// be.
    ///
    /// # Errors
    /// See [`Inspector`].
    pub async fn pause(&self, queue: impl AsRef<str>) -> Result<(), StoreError> {
        self.set(queue, &[Setting::Paused(true)]).await
    }

    /// Ends a pause, and wakes a worker if there is work.
    ///
    /// # Errors
    /// `NotFound` if nobody has made the queue.
    pub async fn resume(&self, queue: impl AsRef<str>) -> Result<(), StoreError> {
        let queue = QueueName::new(queue)?;
        match self.store.queue(&queue).await {
            // A slip of the pen shall not make a queue.
            Err(error @ StoreError::NotFound(_)) => Err(error),
            // One whose counters are damaged may be resumed all the same.
            _ => self.store.set(&queue, &[Setting::Paused(false)]).await,
        }
    }

    /// Refuses jobs beyond so many unfinished ones; none: no limit. Makes the queue if need be.
    ///
    /// # Errors
    /// `Invalid` above 2^53.
    pub async fn limit(
        &self,
        queue: impl AsRef<str>,
        limit: Option<u64>,
    ) -> Result<(), StoreError> {
        self.set(queue, &[Setting::Limit(limit)]).await
    }

    /// Changes settings of a queue, all or none. Makes the queue if need be.
    ///
    /// # Errors
    /// `Invalid` if one is out of bounds.
    pub async fn set(
        &self,
        queue: impl AsRef<str>,
        settings: &[Setting],
    ) -> Result<(), StoreError> {
        self.store.set(&QueueName::new(queue)?, settings).await
    }

    /// Deletes a queue with all that is in it.
    ///
    /// # Errors
    /// `Invalid` if it has unfinished jobs and is not forced; `NotFound` if nobody has made it.
    pub async fn delete_queue(
        &self,
        queue: impl AsRef<str>,
        force: bool,
    ) -> Result<(), StoreError> {
        self.store.delete_queue(&QueueName::new(queue)?, force).await
    }

    /// Everything known of a job.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub async fn job(
        &self,
        queue: impl AsRef<str>,
        id: impl AsRef<str>,
    ) -> Result<JobInfo, StoreError> {
        self.store.show(&QueueName::new(queue)?, &JobId::new(id)?).await
    }

    /// The jobs of a state, page by page.
    ///
    /// # Errors
    /// `Invalid` if the queue's name is none.
    pub fn jobs(&self, queue: impl AsRef<str>, state: State) -> Result<Jobs, StoreError> {
        Ok(Jobs::new(self.store.clone(), QueueName::new(queue)?, state))
    }

    /// Does the same to all jobs of a state, slice by slice.
    ///
    /// # Errors
    /// `Invalid` if the state forbids the verb, or the queue's name is none.
    pub fn bulk(
        &self,
        queue: impl AsRef<str>,
        operation: Operation,
        state: State,
    ) -> Result<Bulk, StoreError> {
        Bulk::new(self.store.clone(), QueueName::new(queue)?, operation, state)
    }

    /// Stops an unfinished job for good. A handler that runs it is told, and its fence is superseded.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if it is completed, archived or quarantined.
    pub async fn cancel(
        &self,
        queue: impl AsRef<str>,
        id: impl AsRef<str>,
    ) -> Result<Change, StoreError> {
        self.operate(queue, Operation::Cancel, id).await
    }

    /// Gives an unfinished job up.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if it is completed, cancelled or quarantined.
    pub async fn archive(
        &self,
        queue: impl AsRef<str>,
        id: impl AsRef<str>,
    ) -> Result<Change, StoreError> {
        self.operate(queue, Operation::Archive, id).await
    }

    /// Makes a scheduled or retry job the next one of its lane.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if it is in another state, but for pending: unchanged.
    pub async fn run(
        &self,
        queue: impl AsRef<str>,
        id: impl AsRef<str>,
    ) -> Result<Change, StoreError> {
        self.operate(queue, Operation::Run, id).await
    }

    /// Starts a completed, archived or cancelled job again, attempts and crashes at zero. Limits are
    /// not looked at.
    ///
    /// # Errors
    /// `NotFound`; `Duplicate` if another job holds its unique key, `Quarantined` if its fingerprint
    /// is, `Invalid` if its deadline is past or it is in another state.
    pub async fn rerun(
        &self,
        queue: impl AsRef<str>,
        id: impl AsRef<str>,
    ) -> Result<Change, StoreError> {
        self.operate(queue, Operation::Rerun, id).await
    }

    /// Forgets a job that nobody runs, but for a remembered identity.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if it is active: cancel it first.
    pub async fn delete(
        &self,
        queue: impl AsRef<str>,
        id: impl AsRef<str>,
    ) -> Result<Change, StoreError> {
        self.operate(queue, Operation::Delete, id).await
    }

    /// One operation on one job.
    ///
    /// # Errors
    /// See [`Operation`].
    pub async fn operate(
        &self,
        queue: impl AsRef<str>,
        operation: Operation,
        id: impl AsRef<str>,
    ) -> Result<Change, StoreError> {
        let outcomes =
            self.store.operate(&QueueName::new(queue)?, operation, &[JobId::new(id)?]).await?;
        let missing = Err(StoreError::Backend("no outcome".to_owned()));
        outcomes.into_iter().next().unwrap_or(missing)
    }
}
