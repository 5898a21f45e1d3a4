//! What is given back of no charge in particular: the latest units, by every algorithm.

use tollgate::{Algorithm, Quota, Stamp, algorithm::Meter};

use super::{Backend, START, bucket, windows};

const MINUTE: u64 = 60_000_000;
/// Of a bucket of ten units a minute.
const UNIT: u64 = MINUTE / 10;

fn all() -> Vec<(Algorithm, Meter)> {
    let bucket = (Algorithm::TokenBucket, bucket(Quota::per_minute(10)));
    windows(10, MINUTE).into_iter().chain([bucket]).collect()
}

fn by(algorithm: Algorithm) -> Meter {
    all().into_iter().find(|(other, _)| *other == algorithm).unwrap().1
}

fn take(backend: &mut impl Backend, meter: Meter, now: u64, key: &str, units: u64) {
    assert!(backend.one(meter, now, key, units).fits(), "{units} of {key}");
}

fn give(backend: &mut impl Backend, meter: Meter, now: u64, key: &str, units: u64) {
    backend.refund(meter, now, key, units, Stamp::LATEST);
}

fn left(backend: &mut impl Backend, meter: Meter, now: u64, key: &str) -> u64 {
    backend.one(meter, now, key, 0).remaining()
}

/// Of several charges, so many units come back, and never more than were taken; whoever has all back is
/// as one who took nothing.
pub(crate) fn so_many_units_come_back_and_no_more(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        for (units, expected) in [(1, 2), (3, 4), (5, 6), (8, 9), (9, 10), (10, 10), (u64::MAX, 10)]
        {
            let key = format!("{algorithm:?}:{units}");
            for cost in [2, 3, 4] {
                take(backend, meter, START, &key, cost);
            }
            give(backend, meter, START, &key, units);
            let look = backend.one(meter, START, &key, 0);
            assert_eq!(look.remaining(), expected, "{key}");
            assert_eq!(look.reset().is_zero(), expected == 10, "{key}");
            take(backend, meter, START, &key, expected);
            assert!(!backend.one(meter, START, &key, 1).fits(), "{key}");
        }
    }
}

/// What is left stands as if only that had been taken.
pub(crate) fn what_was_taken_before_stays_taken(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        let (key, alone) = (format!("{algorithm:?}"), format!("{algorithm:?}:alone"));
        for key in [&key, &alone] {
            take(backend, meter, START, key, 4);
        }
        take(backend, meter, START + 1, &key, 5);
        give(backend, meter, START + 2, &key, 5);
        for now in [START + 2, START + UNIT, START + MINUTE - 1, START + MINUTE, START + 2 * MINUTE]
        {
            for cost in [0, 7, 11] {
                let seen = [&key, &alone].map(|key| backend.one(meter, now, key, cost));
                assert_eq!(seen[0], seen[1], "{cost} of {key} at {now}");
            }
        }
    }
}

/// A bucket gets its units' time back, to the microsecond, whatever has come back by itself.
pub(crate) fn a_bucket_gets_the_time_of_its_units(backend: &mut impl Backend) {
    let meter = by(Algorithm::TokenBucket);
    take(backend, meter, START, "k", 10);
    let now = START + UNIT / 2;
    give(backend, meter, now, "k", 3);
    let look = backend.one(meter, now, "k", 0);
    assert_eq!((look.remaining(), look.reset().as_micros()), (3, u128::from(6 * UNIT + UNIT / 2)));
    give(backend, meter, now, "k", 7);
    let look = backend.one(meter, now, "k", 0);
    assert_eq!((look.remaining(), look.reset().as_micros()), (10, 0));
}

/// A log loses its latest units: those that are left fall out as they would have.
pub(crate) fn a_log_loses_its_latest_units(backend: &mut impl Backend) {
    let meter = by(Algorithm::SlidingLog);
    for (at, units) in [(0, 3), (10, 2), (20, 4)] {
        take(backend, meter, START + at, "k", units);
    }
    give(backend, meter, START + 30, "k", 5);
    let look = backend.one(meter, START + 30, "k", 0);
    assert_eq!((look.remaining(), look.reset().as_micros()), (6, u128::from(MINUTE - 20)));
    assert_eq!(left(backend, meter, START + MINUTE, "k"), 9);
    assert_eq!(left(backend, meter, START + MINUTE + 10, "k"), 10);
    // Those that fell out stay there until the next charge, and are none to be given back.
    take(backend, meter, START + MINUTE + 5, "k", 2);
    give(backend, meter, START + MINUTE + 10, "k", 2);
    assert_eq!(left(backend, meter, START + MINUTE + 10, "k"), 10);
    take(backend, meter, START + 3 * MINUTE, "old", 5);
    give(backend, meter, START + 4 * MINUTE, "old", 5);
    take(backend, meter, START + 4 * MINUTE, "old", 10);
}

/// More than one request can take, and less than there is.
pub(crate) fn a_large_log_loses_just_so_many(backend: &mut impl Backend) {
    let quota = Quota::per_minute(20_000);
    let meter = Algorithm::SlidingLog.meter(quota);
    for at in 0..4 {
        take(backend, meter, START + at, "k", 1_000);
    }
    give(backend, meter, START + 9, "k", 2_500);
    assert_eq!(left(backend, meter, START + 9, "k"), 18_500);
    assert_eq!(left(backend, meter, START + MINUTE, "k"), 19_500);
    give(backend, meter, START + MINUTE, "k", 20_000);
    assert_eq!(left(backend, meter, START + MINUTE, "k"), 20_000);
}

/// A counter loses the units of its window first, and then those before, which count as far as the
/// window overlaps them.
pub(crate) fn a_counter_loses_those_of_its_window_first(backend: &mut impl Backend) {
    let meter = by(Algorithm::SlidingCounter);
    let start = START / MINUTE * MINUTE + MINUTE;
    // A little less than half of the window before is in the sliding one.
    let half = start + MINUTE / 2 + 1_000;
    for (units, expected) in [(1, 2), (4, 5), (6, 6), (8, 7), (13, 9), (14, 10), (20, 10)] {
        let key = format!("{units}");
        take(backend, meter, start - 1, &key, 10);
        take(backend, meter, half, &key, 4);
        assert_eq!(left(backend, meter, half, &key), 1, "{key}");
        give(backend, meter, half, &key, units);
        assert_eq!(left(backend, meter, half, &key), expected, "{key}");
    }
}

/// A fixed window loses those of the present one, and begins the next as ever.
pub(crate) fn a_window_loses_those_of_the_present_one(backend: &mut impl Backend) {
    let meter = by(Algorithm::FixedWindow);
    let start = START / MINUTE * MINUTE + MINUTE;
    take(backend, meter, start - 1, "k", 10);
    take(backend, meter, start, "k", 3);
    give(backend, meter, start, "k", 10);
    assert_eq!(left(backend, meter, start, "k"), 10);
    take(backend, meter, start - 1, "gone", 10);
    give(backend, meter, start, "gone", 4);
    take(backend, meter, start, "gone", 10);
}

/// A clock that stepped back leaves nobody with more than the limit, nor locked for longer than a refill.
pub(crate) fn what_lies_ahead_is_brought_back_first(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        for step in [1, UNIT, MINUTE, 100 * MINUTE, 500 * 24 * 60 * MINUTE] {
            let key = format!("{algorithm:?}:{step}");
            take(backend, meter, START - 1, &key, 4);
            take(backend, meter, START, &key, 5);
            let now = START - step;
            give(backend, meter, now, &key, 6);
            let left = left(backend, meter, now, &key);
            assert!((6..=10).contains(&left), "{key}: {left}");
            take(backend, meter, now, &key, left);
            assert!(!backend.one(meter, now, &key, 1).fits(), "{key}");
        }
    }
}

/// A key from which nothing was taken stays one.
pub(crate) fn nothing_comes_back_where_nothing_was_taken(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        let key = format!("{algorithm:?}");
        give(backend, meter, START, &key, 5);
        let look = backend.one(meter, START, &key, 0);
        assert_eq!((look.remaining(), look.reset().as_micros()), (10, 0), "{key}");
        take(backend, meter, START, &key, 10);
        assert!(!backend.one(meter, START, &key, 1).fits(), "{key}");
    }
}
