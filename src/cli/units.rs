//! Durations and moments as people write them: `250ms 5s 2m 1h 7d`, RFC 3339.

use sprag::{Timestamp, When};
use std::time::Duration;

/// Reads a duration: a whole number and its unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 0,
    };
    let number = number.parse::<u64>().ok().filter(|_| unit_ms > 0);
    let ms = number.ok_or("must be a duration such as 250ms, 5s, 2m, 1h or 7d")?;
    ms.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "too long".to_owned())
}

/// Reads an RFC 3339 time, such as `2026-01-31T08:00:00Z`. One before 1970 is past like any other.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    let at: jiff::Timestamp =
        text.parse().map_err(|_| "must be a time such as 2026-01-31T08:00:00Z".to_owned())?;
    Ok(Timestamp::from_millis(u64::try_from(at.as_millisecond()).unwrap_or(0)))
}

/// Reads a duration from now on, or a time.
pub(crate) fn when(text: &str) -> Result<When, String> {
    duration(text).map(When::In).or_else(|_| time(text).map(When::At)).map_err(|_| {
        "must be a duration such as 5s, or a time such as 2026-01-31T08:00:00Z".to_owned()
    })
}

/// A moment for people.
pub(crate) fn shown(at: Timestamp) -> String {
    let at = i64::try_from(at.as_millis())
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| "?".to_owned(), |at| format!("{at:.3}"))
}

/// Whole milliseconds, for a field that ends in `_ms`.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        for (text, ms) in [("250ms", 250), ("5s", 5_000), ("2m", 120_000), ("7d", 604_800_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "5", "s", "-1s", "1.5h", "1h30m", "5 s", "5S", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(duration("999999999999999d"), Err("too long".to_owned()));
    }

    #[test]
    fn a_time_is_rfc_3339_in_any_zone() {
        let at = time("2026-01-31T09:00:00.250+01:00").expect("a time");
        assert_eq!(at, Timestamp::from_millis(1_769_846_400_250));
        assert_eq!(shown(at), "2026-01-31T08:00:00.250Z");
        assert_eq!(time("1969-01-01T00:00:00Z"), Ok(Timestamp::from_millis(0)));
        assert!(time("tomorrow").is_err() && time("2026-01-31").is_err());
        assert_eq!(when("5s"), Ok(When::In(Duration::from_secs(5))));
        assert_eq!(when("2026-01-31T09:00:00.250+01:00"), Ok(When::At(at)));
    }
}
