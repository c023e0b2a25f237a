//! What time it is for a memory store.

use crate::model::Timestamp;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A clock that stands still until it is told to move: leases, retries and retention in a unit
/// test without waiting.
///
/// Clones are the same clock, so keep one and hand the other to
/// [`MemoryStore::with_clock`](crate::MemoryStore::with_clock).
///
/// ```
/// use sprag::{ManualClock, Timestamp};
/// use std::time::Duration;
///
/// let clock = ManualClock::at(Timestamp::from_millis(1_764_500_000_000));
/// clock.clone().advance(Duration::from_secs(5));
/// assert_eq!(clock.now(), Timestamp::from_millis(1_764_500_005_000));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    millis: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that shows this moment.
    pub fn at(moment: Timestamp) -> Self {
        Self { millis: Arc::new(AtomicU64::new(moment.as_millis())) }
    }

    /// Moves the clock forward by whole milliseconds; what is below a millisecond is cut.
    ///
    /// Nothing happens by itself: a job that became due is promoted by the next sweep.
    pub fn advance(&self, by: Duration) {
        let later = |millis| Some((Timestamp::from_millis(millis) + by).as_millis());
        // The closure always answers, so this always succeeds.
        let _ = self.millis.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// The moment that the clock shows.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst))
    }
}

/// Where a store reads the time.
#[derive(Debug)]
pub(super) enum Clock {
    System,
    Manual(ManualClock),
}

impl Clock {
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Manual(clock) => clock.now(),
        }
    }
}
