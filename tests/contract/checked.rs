//! A store that asserts the invariants after every call.

use crate::backend::Backend;
use sprag::{
    Enqueued, Envelope, Fingerprint, JobId, Kind, QueueName, State, Store, StoreError, WorkerId,
    store::{
        Archive, BatchError, Change, Channel, Claim, Complete, Day, Durability, Events, Held,
        JobInfo, Operation, Outcomes, Pace, Page, Quarantine, QueueInfo, Released, Retry, Setting,
        Snooze, Swept, Wish, WorkerInfo,
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

            async fn register(&self, queues: &[QueueName]) -> Result<(), StoreError> {
                self.store.register(queues).await
            }

            async fn listen(&self, channel: Channel) -> Result<Events, StoreError> {
                self.store.listen(channel).await
            }

            async fn beat(&self, worker: &WorkerInfo) -> Result<Option<Wish>, StoreError> {
                self.store.beat(worker).await
            }

            async fn ask(&self, worker: &WorkerId, wish: Wish) -> Result<(), StoreError> {
                self.store.ask(worker, wish).await
            }

            async fn retire(&self, worker: &WorkerId) -> Result<(), StoreError> {
                self.store.retire(worker).await
            }

            async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
                self.store.workers().await
            }

            fn apart(&self) -> Arc<dyn Store> {
                Arc::new(Self { store: self.store.apart(), backend: self.backend.clone() })
            }

            fn durable(&self, durability: Durability) -> Arc<dyn Store> {
                let store = self.store.durable(durability);
                Arc::new(Self { store, backend: self.backend.clone() })
            }

            async fn ready(&self) -> Result<(), StoreError> {
                self.store.ready().await
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
    watch(for_: Duration) -> Result<(), StoreError>;
    sweep(pace: Pace) -> Result<Swept, StoreError>;
    operate(operation: Operation, ids: &[JobId]) -> Result<Outcomes<Change>, StoreError>;
    set(settings: &[Setting]) -> Result<(), StoreError>;
    quarantine(fingerprint: &Fingerprint, reason: Option<&str>) -> Result<Change, StoreError>;
    release(fingerprint: &Fingerprint) -> Result<Released, StoreError>;
    quarantines() -> Result<Vec<Quarantine>, StoreError>;
    list(
        state: State,
        kind: Option<&Kind>,
        cursor: Option<&str>,
        limit: usize
    ) -> Result<Page, StoreError>;
    days(days: u32) -> Result<Vec<Day>, StoreError>;
    delete_queue(force: bool) -> Result<(), StoreError>;
    progress(held: &Held, progress: &str) -> Result<(), StoreError>;
    show(id: &JobId) -> Result<JobInfo, StoreError>;
    queue() -> Result<QueueInfo, StoreError>;
    wake() -> Result<(), StoreError>;
}
