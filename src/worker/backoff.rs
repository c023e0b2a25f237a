//! How long a failed job waits for its next attempt.

use std::time::Duration;

/// `base` after the first attempt, `factor` times as long after each further one, at most `cap`;
/// each spread by ± `jitter`, so that jobs that failed together do not come back together. The
/// usual: 15 s, doubling, at most a day, ± 15 %: 25 attempts last about twelve days.
///
/// ```
/// use sprag::worker::Exponential;
/// use std::time::Duration;
///
/// let backoff = Exponential { base: Duration::from_secs(1), jitter: 0.0, ..Exponential::default() };
/// assert_eq!(backoff.after(4), Duration::from_secs(8));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponential {
    /// After the first attempt.
    pub base: Duration,
    /// From one attempt to the next.
    pub factor: f64,
    /// At most, before it is spread.
    pub cap: Duration,
    /// 0.0 to 1.0: the part by which a wait may be shorter or longer.
    pub jitter: f64,
}

impl Default for Exponential {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(15),
            factor: 2.0,
            cap: Duration::from_secs(24 * 3600),
            jitter: 0.15,
        }
    }
}

impl Exponential {
    /// The wait after the attempt of this number, from 1, failed.
    pub fn after(&self, attempt: u32) -> Duration {
        let steps = f64::from(attempt.saturating_sub(1));
        let seconds = self.base.as_secs_f64() * self.factor.powf(steps);
        let seconds = seconds.min(self.cap.as_secs_f64());
        let spread = 1.0 + self.jitter * (2.0 * fastrand::f64() - 1.0);
        Duration::try_from_secs_f64(seconds * spread).unwrap_or(self.cap)
    }
}

/// A delay must not keep its job from settling: rounded up to whole ms, within bounds.
pub(super) fn in_bounds(delay: Duration) -> Duration {
    let millis = delay.as_nanos().div_ceil(1_000_000).max(1);
    let most = crate::model::MAX_DURATION;
    u64::try_from(millis).map_or(most, |millis| Duration::from_millis(millis).min(most))
}

/// Spread by ± 20 %.
pub(super) fn about(delay: Duration) -> Duration {
    delay.mul_f64(0.8 + 0.4 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_and_is_capped_and_in_bounds() {
        let usual = Exponential::default();
        for (attempt, least, most) in
            [(1, 12.7, 17.3), (3, 51.0, 69.0), (14, 73_400.0, 99_400.0), (900, 73_400.0, 99_400.0)]
        {
            let seconds = usual.after(attempt).as_secs_f64();
            assert!((least..=most).contains(&seconds), "{attempt}: {seconds}");
        }
        assert_eq!(in_bounds(Duration::ZERO), Duration::from_millis(1));
        assert_eq!(in_bounds(Duration::from_micros(1_001)), Duration::from_millis(2));
        assert_eq!(in_bounds(Duration::MAX), crate::model::MAX_DURATION);
    }
}
