//! Units of the calendar, by table.

use tollgate::{
    Algorithm,
    Calendar::{self, Day, Month, Week},
    Quota,
};

use super::Backend;

/// A moment, and the unit that it lies in, from its first day to that of the next.
type Row = (Calendar, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (Day, "1970-01-01T00:00:00.000000", "1970-01-01", "1970-01-02"),
    (Day, "1970-01-01T23:59:59.999999", "1970-01-01", "1970-01-02"),
    (Day, "2024-02-28T23:59:59.999999", "2024-02-28", "2024-02-29"),
    (Day, "2024-02-29T00:00:00.000000", "2024-02-29", "2024-03-01"),
    (Day, "2023-02-28T12:00:00.000001", "2023-02-28", "2023-03-01"),
    (Day, "2100-02-28T23:59:59.999999", "2100-02-28", "2100-03-01"),
    (Day, "1999-12-31T23:59:59.999999", "1999-12-31", "2000-01-01"),
    // A Thursday: the first week is cut.
    (Week, "1970-01-01T00:00:00.000000", "1970-01-01", "1970-01-05"),
    (Week, "1970-01-04T23:59:59.999999", "1970-01-01", "1970-01-05"),
    (Week, "1970-01-05T00:00:00.000000", "1970-01-05", "1970-01-12"),
    (Week, "2024-02-25T23:59:59.999999", "2024-02-19", "2024-02-26"),
    (Week, "2024-02-26T00:00:00.000000", "2024-02-26", "2024-03-04"),
    (Week, "2024-02-29T13:14:15.000007", "2024-02-26", "2024-03-04"),
    (Week, "2024-03-03T23:59:59.999999", "2024-02-26", "2024-03-04"),
    (Week, "2024-12-31T00:00:00.000000", "2024-12-30", "2025-01-06"),
    (Week, "2100-03-01T00:00:00.000000", "2100-03-01", "2100-03-08"),
    (Month, "1970-01-01T00:00:00.000000", "1970-01-01", "1970-02-01"),
    (Month, "1970-12-31T23:59:59.999999", "1970-12-01", "1971-01-01"),
    (Month, "2000-02-29T23:59:59.999999", "2000-02-01", "2000-03-01"),
    (Month, "2000-03-01T00:00:00.000000", "2000-03-01", "2000-04-01"),
    (Month, "2023-01-31T23:59:59.999999", "2023-01-01", "2023-02-01"),
    (Month, "2023-02-01T00:00:00.000000", "2023-02-01", "2023-03-01"),
    (Month, "2023-02-28T23:59:59.999999", "2023-02-01", "2023-03-01"),
    (Month, "2023-03-15T00:00:00.000001", "2023-03-01", "2023-04-01"),
    (Month, "2023-04-30T23:59:59.999999", "2023-04-01", "2023-05-01"),
    (Month, "2023-05-31T23:59:59.999999", "2023-05-01", "2023-06-01"),
    (Month, "2023-06-30T23:59:59.999999", "2023-06-01", "2023-07-01"),
    (Month, "2023-07-31T23:59:59.999999", "2023-07-01", "2023-08-01"),
    (Month, "2023-08-31T23:59:59.999999", "2023-08-01", "2023-09-01"),
    (Month, "2023-09-30T23:59:59.999999", "2023-09-01", "2023-10-01"),
    (Month, "2023-10-31T23:59:59.999999", "2023-10-01", "2023-11-01"),
    (Month, "2023-11-30T23:59:59.999999", "2023-11-01", "2023-12-01"),
    (Month, "2023-12-31T23:59:59.999999", "2023-12-01", "2024-01-01"),
    (Month, "2024-01-01T00:00:00.000000", "2024-01-01", "2024-02-01"),
    (Month, "2024-02-28T23:59:59.999999", "2024-02-01", "2024-03-01"),
    (Month, "2024-02-29T00:00:00.000000", "2024-02-01", "2024-03-01"),
    (Month, "2024-02-29T23:59:59.999999", "2024-02-01", "2024-03-01"),
    (Month, "2024-03-01T00:00:00.000000", "2024-03-01", "2024-04-01"),
    (Month, "2096-02-29T12:00:00.000001", "2096-02-01", "2096-03-01"),
    (Month, "2100-02-28T23:59:59.999999", "2100-02-01", "2100-03-01"),
    (Month, "2100-03-01T00:00:00.000000", "2100-03-01", "2100-04-01"),
    (Month, "2100-12-31T23:59:59.999999", "2100-12-01", "2101-01-01"),
    (Month, "2400-02-29T23:59:59.999999", "2400-02-01", "2400-03-01"),
];

/// A double holds whole microseconds until the year 2255.
pub(crate) const EXACT: u64 = 1 << 53;

/// What is taken at the first moment of a unit is taken until its last, and not a microsecond longer.
pub(crate) fn units_begin_and_end_by_the_table(backend: &mut impl Backend) {
    let quota = |unit: Calendar| Quota::new(9, unit.nominal()).unwrap();
    let some = |(at, row): (usize, &(Calendar, u64, u64, u64))| {
        row.3 < EXACT && (at < TABLE.len() || at.is_multiple_of(997))
    };
    for (_, (unit, at, first, next)) in table().iter().enumerate().filter(|row| some(*row)) {
        let (meter, key) =
            (Algorithm::Calendar(*unit).meter(quota(*unit)), format!("{at}:{unit:?}"));
        assert_eq!(backend.one(meter, *first, &key, 1).remaining(), 8, "{key}");
        for (moment, left) in [(*at, 8), (next - 1, 8), (*next, 9)] {
            let look = backend.one(meter, moment, &key, 0);
            assert_eq!(look.remaining(), left, "{key} at {moment}");
            let reset = if left < 9 { next - moment } else { 0 };
            assert_eq!(look.reset().as_micros(), u128::from(reset), "{key} at {moment}");
        }
    }
}

/// The table in microseconds since the Unix epoch, then every day of 150 years, noon.
pub(crate) fn table() -> Vec<(Calendar, u64, u64, u64)> {
    let row = |(unit, at, first, next): &Row| (*unit, micros(at), micros(first), micros(next));
    let mut table: Vec<_> = TABLE.iter().map(row).collect();
    let mut weekday = 3;
    for year in 1970..2120 {
        for month in 1..=12 {
            let (first, next) = (day(year, month, 1), day(year, month, 1 + length(year, month)));
            for day in first..next {
                let monday = day.saturating_sub(weekday);
                let rows =
                    [(Day, day, day + 1), (Week, monday, day + 7 - weekday), (Month, first, next)];
                let noon = day * DAY + DAY / 2;
                table.extend(rows.map(|(unit, from, to)| (unit, noon, from * DAY, to * DAY)));
                weekday = (weekday + 1) % 7;
            }
        }
    }
    table
}

const DAY: u64 = 86_400 * 1_000_000;

/// `2024-02-29`, and `T13:14:15.000007` behind it.
fn micros(text: &str) -> u64 {
    let numbers: Vec<u64> = text
        .split(|char: char| !char.is_ascii_digit())
        .map(|number| number.parse().unwrap())
        .collect();
    let time = numbers
        .get(3..)
        .filter(|time| !time.is_empty())
        .map_or(0, |time| ((time[0] * 60 + time[1]) * 60 + time[2]) * 1_000_000 + time[3]);
    day(numbers[0], numbers[1], numbers[2]) * DAY + time
}

/// Days since 1970-01-01, counted year by year and month by month.
fn day(year: u64, month: u64, day: u64) -> u64 {
    let months = |year, before| (1..before).map(move |month| length(year, month));
    (1970..year).flat_map(|year| months(year, 13)).sum::<u64>()
        + months(year, month).sum::<u64>()
        + (day - 1)
}

fn length(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
