use std::time::Duration;

use crate::time::Timestamp;

const MICROS_PER_DAY: u64 = 86_400 * 1_000_000;
/// 1970-01-01 was a Thursday; weeks begin on Monday (ISO 8601).
const DAYS_FROM_MONDAY: u64 = 3;

/// A calendar's unit of time, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Calendar {
    /// From midnight to midnight.
    Day,
    /// From Monday to Monday (ISO 8601).
    Week,
    /// From the first of a month to the first of the next.
    Month,
}

impl Calendar {
    /// The first moment of the unit that `now` lies in, and of the next.
    #[must_use]
    pub fn around(self, now: Timestamp) -> (Timestamp, Timestamp) {
        let day = now.as_micros() / MICROS_PER_DAY;
        let (first, next) = match self {
            Self::Day => (day, day + 1),
            Self::Week => {
                let monday = (day + DAYS_FROM_MONDAY) / 7 * 7;
                (monday.saturating_sub(DAYS_FROM_MONDAY), monday + 7 - DAYS_FROM_MONDAY)
            }
            Self::Month => {
                let (year, month) = month_of(day);
                (first_of(year, month), first_of(year, month + 1))
            }
        };
        (at(first), at(next))
    }

    /// The unit as a word.
    #[must_use]
    pub const fn as_str(&self) -> &str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The longest that a unit can be, which stands for its length where one number has to.
    #[must_use]
    pub const fn nominal(self) -> Duration {
        let days = match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
        };
        Duration::from_secs(days * 86_400)
    }
}

const fn at(day: u64) -> Timestamp {
    Timestamp::from_micros(day.saturating_mul(MICROS_PER_DAY))
}

// The proleptic Gregorian calendar in integers, by Howard Hinnant's `civil_from_days` and
// `days_from_civil` ("chrono-Compatible Low-Level Date Algorithms"). A year begins in March, so that
// the leap day comes last; 400 years have 146,097 days, and 719,468 days lie between 0000-03-01 and
// 1970-01-01.

/// The year and the month, 1 to 12, of a day since 1970-01-01.
const fn month_of(day: u64) -> (u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + (month <= 2) as u64, month)
}

/// The day since 1970-01-01 on which a month, 1 to 13, begins; the thirteenth is the next January.
const fn first_of(year: u64, month: u64) -> u64 {
    let (year, month) = if month > 12 { (year + 1, month - 12) } else { (year, month) };
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
