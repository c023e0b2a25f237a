//! What a store brings along to be tried.

use sprag::{ManualClock, MemoryStore, QueueName, Store, StoreError, Timestamp};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A store on virtual time, and a way to look behind it.
#[async_trait::async_trait]
pub(crate) trait Backend: Send + Sync {
    /// A store for one case.
    async fn start() -> Self
    where
        Self: Sized;

    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Moves the store's clock.
    async fn advance(&self, by: Duration);

    /// What the store's clock shows.
    async fn now(&self) -> Timestamp;

    /// A queue that nobody else uses; another one on every call.
    async fn queue(&self) -> QueueName {
        fresh_queue()
    }

    /// The queue is lost from the list: its maker died between the two.
    async fn lose_from_list(&self, _queue: &QueueName) {}

    /// Makes the last beats of all workers that much older.
    async fn age_beats(&self, by: Duration) {
        self.advance(by).await;
    }

    /// Asserts what holds at any moment and only this backend can see.
    async fn look_behind(&self, _queue: &QueueName) {}

    /// Asserts what holds at any moment, whatever was done.
    async fn check(&self, queue: &QueueName) {
        let info = match self.store().queue(queue).await {
            Err(StoreError::NotFound(_)) => return,
            info => info.expect("queue"),
        };
        let counted = info.pending + info.scheduled + info.active + info.retry;
        assert_eq!(info.unfinished, counted, "unfinished is not the true count: {info:?}");
        assert!(info.oldest_pending_ms.is_none() || info.pending > 0, "{info:?}");
        self.look_behind(queue).await;
    }
}

pub(crate) fn fresh_queue() -> QueueName {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    QueueName::new(format!("q-{}-{number}", std::process::id())).expect("queue")
}

/// One async test per case and backend. A case that is in no list is dead code, and so a warning.
macro_rules! cases {
    ($($case:ident,)*) => {
        cases!(@on memory, crate::backend::Memory: $($case)*);
        cases!(@on redis, crate::redis::Redis: $($case)*);
    };
    (@on $name:ident, $backend:ty: $($case:ident)*) => {
        mod $name {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(crate::trial::Trial::on::<$backend>().await).await;
                }
            )*
        }
    };
}

/// The memory store.
pub(crate) struct Memory {
    clock: ManualClock,
    store: Arc<MemoryStore>,
}

#[async_trait::async_trait]
impl Backend for Memory {
    async fn start() -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_764_500_000_000));
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        Self { clock, store }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
