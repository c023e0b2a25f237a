//! Durations and moments as people write them: `250ms 5s 2m 1h 7d`, RFC 3339.

use jiff::fmt::temporal::Pieces;
use sprag::{Timestamp, When, model::MAX_DURATION};
use std::{ops::RangeInclusive, time::Duration};

const NO_DURATION: &str = "must be a duration such as 250ms, 5s, 2m, 1h or 7d";
const NO_TIME: &str = "must be a time such as 2026-01-31T08:00:00Z";
/// The last moment that a record can hold.
const LAST_MS: u64 = 9_999_999_999_999;

/// Reads a duration: a whole number and its unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(1), MAX_DURATION, "must be 1ms to 3650d")
}

/// Reads the length of a lease.
pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    let day = Duration::from_secs(24 * 3_600);
    within(text, Duration::from_millis(100), day, "must be 100ms to 24h")
}

fn within(text: &str, least: Duration, most: Duration, bound: &str) -> Result<Duration, String> {
    let read = any_duration(text)?;
    read.filter(|read| (least..=most).contains(read)).ok_or_else(|| bound.to_owned())
}

/// None: longer than anything.
fn any_duration(text: &str) -> Result<Option<Duration>, String> {
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
    if number.is_empty() || unit_ms == 0 {
        return Err(NO_DURATION.to_owned());
    }
    let ms = number.parse().ok().and_then(|number: u64| number.checked_mul(unit_ms));
    Ok(ms.map(Duration::from_millis))
}

/// A reader of whole numbers within these bounds.
pub(crate) fn whole<T: TryFrom<u64>>(
    bounds: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match *bounds.end() {
            u64::MAX => "must be a whole number".to_owned(),
            end => format!("must be a whole number, {} to {end}", bounds.start()),
        })
    }
}

/// Reads an RFC 3339 time, such as `2026-01-31T08:00:00Z`. One before 1970 is past like any other.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    let ms = match text.parse::<jiff::Timestamp>() {
        Ok(at) => u64::try_from(at.as_millisecond()).unwrap_or(0),
        Err(_) if is_time(text) => u64::MAX,
        Err(_) => return Err(NO_TIME.to_owned()),
    };
    if ms > LAST_MS {
        return Err("must be before 2286-11-20T17:46:40Z".to_owned());
    }
    Ok(Timestamp::from_millis(ms))
}

/// The form is right, though the time may be beyond what can be counted.
fn is_time(text: &str) -> bool {
    Pieces::parse(text).is_ok_and(|read| read.time().is_some() && read.offset().is_some())
}

/// Reads a duration from now on, or a time.
pub(crate) fn when(text: &str) -> Result<When, String> {
    match (duration(text), time(text)) {
        (Ok(delay), _) => Ok(When::In(delay)),
        (_, Ok(at)) => Ok(When::At(at)),
        (Err(why), Err(no_time)) if no_time == NO_TIME => match &*why {
            NO_DURATION => Err(format!("must be a duration such as 5s, or {}", &NO_TIME[8..])),
            _ => Err(why),
        },
        (_, Err(why)) => Err(why),
    }
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
        for bad in ["", "5", "s", "-1s", "1.5h", "1h30m", "5 s", "5S"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        let bound = |bound: &str| Err(bound.to_owned());
        for beyond in ["0ms", "0s", "3651d", "999999999999999d", "99999999999999999999s"] {
            assert_eq!(duration(beyond), bound("must be 1ms to 3650d"), "{beyond}");
            assert_eq!(when(beyond), bound("must be 1ms to 3650d").map(When::In), "{beyond}");
        }
        assert!(duration("1ms").is_ok() && duration("3650d").is_ok());
        for beyond in ["0ms", "99ms", "25h"] {
            assert_eq!(lease(beyond), bound("must be 100ms to 24h"), "{beyond}");
        }
        assert!(lease("100ms").is_ok() && lease("24h").is_ok());
    }

    #[test]
    fn a_whole_number_has_bounds() {
        let priority = whole::<u8>(0..=9);
        assert_eq!((priority("0"), priority("9")), (Ok(0), Ok(9)));
        for bad in ["10", "-1", "300", "1.5", "", "x", "99999999999999999999"] {
            assert_eq!(priority(bad), Err("must be a whole number, 0 to 9".to_owned()), "{bad}");
        }
        let fence = whole::<u64>(0..=u64::MAX);
        assert_eq!(fence("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(fence("-1"), Err("must be a whole number".to_owned()));
    }

    #[test]
    fn a_time_is_rfc_3339_in_any_zone() {
        let at = time("2026-01-31T09:00:00.250+01:00").expect("a time");
        assert_eq!(at, Timestamp::from_millis(1_769_846_400_250));
        assert_eq!(shown(at), "2026-01-31T08:00:00.250Z");
        assert_eq!(time("1969-01-01T00:00:00Z"), Ok(Timestamp::from_millis(0)));
        assert!(time("tomorrow").is_err() && time("2026-01-31").is_err());
        let last = "2286-11-20T17:46:39.999Z";
        assert_eq!(time(last), Ok(Timestamp::from_millis(LAST_MS)));
        for late in ["2286-11-20T17:46:40Z", "9999-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
            let bound = "must be before 2286-11-20T17:46:40Z".to_owned();
            assert_eq!((time(late), when(late)), (Err(bound.clone()), Err(bound)), "{late}");
        }
        for bad in ["9999-12-31", "9999-13-01T00:00:00Z", "9999-12-31T23:59:59"] {
            assert_eq!(time(bad), Err(NO_TIME.to_owned()), "{bad}");
        }
        let neither = "must be a duration such as 5s, or a time such as 2026-01-31T08:00:00Z";
        assert_eq!(when("soon"), Err(neither.to_owned()));
        assert_eq!(when("5s"), Ok(When::In(Duration::from_secs(5))));
        assert_eq!(when("2026-01-31T09:00:00.250+01:00"), Ok(When::At(at)));
    }
}
