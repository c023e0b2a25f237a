//! A store that asserts the invariants after every call.

use crate::backend::Backend;
use sprag::{
    Enqueued, Envelope, JobId, QueueName, State, Store, StoreError, WorkerId,
    store::{
        Archive, BatchError, Change, Claim, Complete, Held, JobInfo, Outcomes, Pace, QueueInfo,
        Retry, Snooze, Swept,
    },
};
use std::{fmt, sync::Arc, time::Duration};

pub(crate) struct Checked {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) backend: Arc<dyn Backend>,
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// Delegates, then checks the queue.
macro_rules! checked {
    ($($verb:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait::async_trait]
        impl Store for Checked {
            $(
                async fn $verb(&self, queue: &QueueName, $($arg: $type),*) -> $answer {
                    let answer = self.store.$verb(queue, $($arg),*).await;
                    self.backend.check(queue).await;
                    answer
                }
            )*

            async fn queues(&self) -> Result<Vec<QueueName>, StoreError> {
                self.store.queues().await
            }

            async fn wait(
                &self,
                queues: &[QueueName],
                timeout: Duration,
            ) -> Result<Option<QueueName>, StoreError> {
                let answer = self.store.wait(queues, timeout).await;
                for queue in queues {
                    self.backend.check(queue).await;
                }
                answer
            }
        }
    };
}

checked! {
    enqueue(jobs: &[Envelope]) -> Result<Outcomes<Enqueued>, StoreError>;
    enqueue_atomic(jobs: &[Envelope]) -> Result<Vec<Enqueued>, BatchError>;
    claim(worker: &WorkerId, count: usize, lease: Duration) -> Result<Claim, StoreError>;
    extend(held: &[Held], lease: Duration) -> Result<Outcomes<()>, StoreError>;
    complete(jobs: &[Complete]) -> Result<Outcomes<()>, StoreError>;
    retry(jobs: &[Retry]) -> Result<Outcomes<State>, StoreError>;
    archive(jobs: &[Archive]) -> Result<Outcomes<()>, StoreError>;
    snooze(jobs: &[Snooze]) -> Result<Outcomes<()>, StoreError>;
    requeue(held: &[Held]) -> Result<Outcomes<()>, StoreError>;
    sweep(pace: Pace) -> Result<Swept, StoreError>;
    cancel(ids: &[JobId]) -> Result<Outcomes<Change>, StoreError>;
    limit(limit: Option<u64>) -> Result<(), StoreError>;
    show(id: &JobId) -> Result<JobInfo, StoreError>;
    queue() -> Result<QueueInfo, StoreError>;
    wake() -> Result<(), StoreError>;
}
