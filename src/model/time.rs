//! Moments and durations, always whole milliseconds.

use super::error::StoreError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest duration anywhere: 10 years of 365 days.
pub const MAX_DURATION: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A moment on Redis' clock, in whole milliseconds since 1970-01-01 UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Milliseconds since 1970-01-01 UTC.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01 UTC.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// This machine's clock. It decides nothing about a job: Redis' clock does.
    pub fn now() -> Self {
        SystemTime::now().into()
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(millis(later)))
    }
}

impl From<SystemTime> for Timestamp {
    /// Moments before 1970 become 1970, nanoseconds are cut.
    fn from(at: SystemTime) -> Self {
        Self(at.duration_since(UNIX_EPOCH).map_or(0, millis))
    }
}

/// When something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    /// At once.
    #[default]
    Now,
    /// So long after Redis has accepted the call, by Redis' clock.
    In(Duration),
    /// At this moment of Redis' clock; a past one is now.
    At(Timestamp),
}

/// Whole milliseconds of a duration, saturating.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Checks a duration against the bound that all share.
///
/// # Errors
/// `Invalid` unless it is whole milliseconds from 1 ms to 10 years. Nothing is rounded or clamped.
pub(crate) fn checked(field: &str, duration: Duration) -> Result<Duration, StoreError> {
    within(field, duration, Duration::from_millis(1), MAX_DURATION, "whole ms, 1 ms to 10 years")
}

/// Checks how long somebody is to be kept waiting: whole milliseconds, 1 ms to 1 min.
pub(crate) fn checked_wait(field: &str, wait: Duration) -> Result<Duration, StoreError> {
    let most = Duration::from_secs(60);
    within(field, wait, Duration::from_millis(1), most, "whole ms, 1 ms to 1 min")
}

/// Checks the length of a lease: whole milliseconds, 100 ms to 24 h.
pub(crate) fn checked_lease(lease: Duration) -> Result<Duration, StoreError> {
    let day = Duration::from_secs(24 * 3600);
    within("lease", lease, Duration::from_millis(100), day, "whole ms, 100 ms to 24 h")
}

fn within(
    field: &str,
    duration: Duration,
    least: Duration,
    most: Duration,
    bound: &str,
) -> Result<Duration, StoreError> {
    let whole = duration.subsec_nanos().is_multiple_of(1_000_000);
    if !whole || duration < least || duration > most {
        return Err(StoreError::invalid(field, shown(duration), bound));
    }
    Ok(duration)
}

/// In milliseconds, with all its digits if it has a part of one.
fn shown(duration: Duration) -> String {
    match duration.subsec_nanos() % 1_000_000 {
        0 => format!("{}ms", duration.as_millis()),
        part => format!("{}.{part:06}ms", duration.as_millis()),
    }
}

/// Checks a moment: it must fit the 13 digits that records hold.
pub(crate) fn checked_at(field: &str, at: Timestamp) -> Result<Timestamp, StoreError> {
    if at.0 > 9_999_999_999_999 {
        return Err(StoreError::invalid(field, at.0, "at most 9999999999999 ms (year 2286)"));
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_whole_milliseconds_within_its_bound() {
        assert!(checked("delay", Duration::from_micros(400)).is_err());
        assert!(checked("delay", Duration::ZERO).is_err());
        assert!(checked("delay", Duration::from_micros(1_500)).is_err());
        assert!(checked("delay", Duration::from_millis(1)).is_ok());
        assert!(checked("delay", MAX_DURATION).is_ok());
        assert!(checked("delay", MAX_DURATION + Duration::from_millis(1)).is_err());
        assert!(checked_lease(Duration::from_millis(99)).is_err());
        assert!(checked_lease(Duration::from_millis(100)).is_ok());
        assert!(checked_lease(Duration::from_secs(86_400)).is_ok());
        assert!(checked_lease(Duration::from_millis(86_400_001)).is_err());
    }
}
