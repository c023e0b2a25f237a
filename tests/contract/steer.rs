//! What a case holds: the verbs of time and operators, and looking.

use crate::trial::*;
use sprag::{
    Envelope, Fingerprint, JobId, State, StoreError,
    store::{
        Change, Day, EndingReason, Held, JobInfo, Operation, Pace, QueueInfo, Released, Setting,
        Swept,
    },
};
use std::time::Duration;

/// How long a `wait` looks for a token that must not be there. Real time.
const LOOK: Duration = ms(20);

/// Time and operators.
impl Trial {
    pub(crate) async fn sweep(&self) -> Swept {
        self.store.sweep(&self.queue, Pace::Now).await.expect("sweep")
    }

    pub(crate) async fn sweep_after(&self, by: Duration) -> Swept {
        self.advance(by).await;
        self.sweep().await
    }

    /// The holders of this job vanish again and again, until it has crashed so often.
    pub(crate) async fn crash_to(&self, job: &JobId, crashes: u32) {
        while self.show(job).await.crash < crashes {
            if self.state(job).await == State::Retry {
                self.sweep_after(self.due_in(job).await).await;
            }
            assert_eq!(self.claim_one().await.id, *job);
            assert_eq!(self.vanish().await.reclaimed, 1);
        }
    }

    pub(crate) async fn operate(
        &self,
        operation: Operation,
        id: &JobId,
    ) -> Result<Change, StoreError> {
        let ids = std::slice::from_ref(id);
        only(self.store.operate(&self.queue, operation, ids).await.expect("operate"))
    }

    pub(crate) async fn cancel(&self, id: &JobId) -> Result<Change, StoreError> {
        self.operate(Operation::Cancel, id).await
    }

    pub(crate) async fn set(&self, setting: Setting) {
        self.store.set(&self.queue, &[setting]).await.expect("set");
    }

    pub(crate) async fn limit(&self, limit: u64) {
        self.set(Setting::Limit(Some(limit))).await;
    }

    pub(crate) async fn quarantine(&self, fingerprint: &Fingerprint) {
        let change = self.store.quarantine(&self.queue, fingerprint, None).await;
        assert_eq!(change, Ok(Change::Changed));
    }

    pub(crate) async fn release(&self, fingerprint: &Fingerprint) -> Released {
        self.store.release(&self.queue, fingerprint).await.expect("released")
    }

    pub(crate) async fn delete_queue(&self, force: bool) -> Result<(), StoreError> {
        self.store.delete_queue(&self.queue, force).await
    }

    pub(crate) async fn find(&self, id: &JobId) -> Result<JobInfo, StoreError> {
        self.store.show(&self.queue, id).await
    }

    pub(crate) async fn show(&self, id: &JobId) -> JobInfo {
        self.find(id).await.expect("the job is there")
    }

    pub(crate) async fn state(&self, id: &JobId) -> State {
        self.show(id).await.state
    }

    /// What was enqueued, as it stands now.
    pub(crate) async fn envelope(&self, id: &JobId) -> Envelope {
        self.show(id).await.envelope.expect("decodes").0
    }

    pub(crate) async fn fingerprint(&self, id: &JobId) -> Fingerprint {
        self.envelope(id).await.fingerprint()
    }

    /// How a finished job ended.
    pub(crate) async fn ending(&self, id: &JobId) -> EndingReason {
        self.show(id).await.ending.expect("ended").reason
    }

    /// How long until a scheduled or retry job is due.
    pub(crate) async fn due_in(&self, id: &JobId) -> Duration {
        let due = self.show(id).await.due_at.expect("due");
        ms(due.as_millis() - self.now().await.as_millis())
    }

    pub(crate) async fn info(&self) -> QueueInfo {
        self.store.queue(&self.queue).await.expect("the queue is there")
    }

    pub(crate) async fn today(&self) -> Day {
        only(self.store.days(&self.queue, 1).await.expect("days"))
    }

    /// Takes the wake token, if there is one.
    pub(crate) async fn token(&self) -> bool {
        let queues = [self.queue.clone()];
        self.store.wait(&queues, LOOK).await.expect("wait").is_some()
    }
}

/// The fenced verbs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fenced {
    Extend,
    Progress,
    Complete,
    Retry,
    Archive,
    Snooze,
    Requeue,
}

impl Fenced {
    /// Those after which the job is held no more.
    pub(crate) const SETTLING: [Self; 5] =
        [Self::Complete, Self::Retry, Self::Archive, Self::Snooze, Self::Requeue];
    /// Those that leave the job with its holder.
    pub(crate) const KEEPING: [Self; 2] = [Self::Extend, Self::Progress];

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::KEEPING.into_iter().chain(Self::SETTLING)
    }

    pub(crate) async fn apply(self, t: &Trial, held: &Held) -> Result<(), StoreError> {
        match self {
            Self::Extend => t.extend(held, LEASE).await,
            Self::Progress => t.store.progress(&t.queue, held, "50").await,
            Self::Complete => t.complete(held).await,
            Self::Retry => t.retry(held, HOUR).await.map(drop),
            Self::Archive => t.archive(held).await,
            Self::Snooze => t.snooze(held, HOUR).await,
            Self::Requeue => t.requeue(held).await,
        }
    }
}
