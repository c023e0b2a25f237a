//! What was counted on each day, UTC.

use crate::{model::Timestamp, store::Day};
use std::collections::BTreeMap;

/// Counters of days more than so many days ago are forgotten.
const KEPT: u64 = 90;

/// Counters by the number of days since 1970-01-01.
#[derive(Debug, Default)]
pub(super) struct Days(BTreeMap<u64, Day>);

impl Days {
    /// The counters of the day, to count on.
    pub(super) fn today(&mut self, now: Timestamp) -> &mut Day {
        self.0.entry(day(now)).or_default()
    }

    /// The last so many days, today first; a day on which nothing happened counts zero.
    pub(super) fn last(&self, count: u32, now: Timestamp) -> Vec<Day> {
        let days = (0..u64::from(count)).map_while(|ago| day(now).checked_sub(ago));
        days.map(|day| Day { day: name(day), ..self.0.get(&day).cloned().unwrap_or_default() })
            .collect()
    }

    pub(super) fn forget(&mut self, now: Timestamp) {
        self.0.retain(|counted, _| counted + KEPT >= day(now));
    }
}

/// Days since 1970-01-01, UTC.
fn day(now: Timestamp) -> u64 {
    now.as_millis() / (24 * 3600 * 1000)
}

/// `yyyy-mm-dd`. After `civil_from_days` of Howard Hinnant's "chrono-Compatible Low-Level Date
/// Algorithms": years begin in March, so that a leap day is the last of its year.
fn name(day: u64) -> String {
    let shifted = day + 719_468; // from 0000-03-01
    let (era, of_era) = (shifted / 146_097, shifted % 146_097); // of 400 years each
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_based = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * march_based + 2) / 5 + 1;
    let month = if march_based < 10 { march_based + 3 } else { march_based - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_name() {
        let days = [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_422, "2025-11-30"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
            (115_740, "2286-11-20"),
        ];
        for (number, text) in days {
            assert_eq!(name(number), text, "{number}");
        }
    }
}
