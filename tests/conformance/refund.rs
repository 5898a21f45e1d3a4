//! What is given back, and what is forgotten, by every algorithm.

use tollgate::{Algorithm, Quota, Stamp, algorithm::Meter};

use super::{Backend, START, bucket, windows};

const MINUTE: u64 = 60_000_000;
/// Of a bucket of ten units a minute.
const UNIT: u64 = MINUTE / 10;

/// One limit of each algorithm, of ten units a minute.
fn all() -> Vec<(Algorithm, Meter)> {
    let bucket = (Algorithm::TokenBucket, bucket(Quota::per_minute(10)));
    windows(10, MINUTE).into_iter().chain([bucket]).collect()
}

fn by(algorithm: Algorithm) -> Meter {
    all().into_iter().find(|(other, _)| *other == algorithm).unwrap().1
}

/// Charges a key, and returns by what the charge is known.
fn charge(backend: &mut impl Backend, meter: Meter, now: u64, key: &str, units: u64) -> Stamp {
    let standing = backend.one(meter, now, key, units);
    assert!(standing.fits(), "{units} of {key}");
    standing.stamp()
}

fn left(backend: &mut impl Backend, meter: Meter, now: u64, key: &str) -> u64 {
    backend.one(meter, now, key, 0).remaining()
}

/// At the moment of the charge, all of it comes back, in whole or in parts, and nothing that another
/// charge took.
pub(crate) fn all_comes_back_at_once_in_whole_or_in_parts(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        let key = format!("{algorithm:?}");
        let first = charge(backend, meter, START, &key, 4);
        let second = charge(backend, meter, START, &key, 3);
        let mut refund = |units, stamp, expected| {
            backend.refund(meter, START, &key, units, stamp);
            assert_eq!(left(backend, meter, START, &key), expected, "{key}");
        };
        refund(3, second, 6);
        refund(1, first, 7);
        refund(1, first, 8);
        refund(2, first, 10);
        let look = backend.one(meter, START, &key, 0);
        assert_eq!((look.remaining(), look.reset().as_micros()), (10, 0), "{key}: as if unused");
        charge(backend, meter, START, &key, 10);
        assert!(!backend.one(meter, START, &key, 1).fits(), "{key}");
    }
}

/// A microsecond later the other charge still stands in full, and what is left and the wait follow
/// from it alone.
pub(crate) fn what_another_charge_took_stays_taken(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        let (key, alone) = (format!("{algorithm:?}"), format!("{algorithm:?}:alone"));
        charge(backend, meter, START, &alone, 6);
        charge(backend, meter, START, &key, 6);
        let second = charge(backend, meter, START, &key, 4);
        backend.refund(meter, START + 1, &key, 4, second);
        for cost in [0, 5, 11] {
            let seen = [&key, &alone].map(|key| backend.one(meter, START + 1, key, cost));
            assert_eq!(seen[0], seen[1], "{cost} of {key}");
        }
    }
}

/// What a bucket got back by itself is not there to be given back: a charge ends at its stamp.
pub(crate) fn a_bucket_gives_back_no_more_than_the_charge_has_left(backend: &mut impl Backend) {
    let meter = by(Algorithm::TokenBucket);
    let key = "early";
    let first = charge(backend, meter, START, key, 5);
    let second = charge(backend, meter, START, key, 5);
    // The first has come back in full, the second but for four.
    let now = START + 6 * UNIT;
    backend.refund(meter, now, key, 5, first);
    assert_eq!(left(backend, meter, now, key), 6);
    backend.refund(meter, now, key, 3, second);
    assert_eq!(left(backend, meter, now, key), 9);
    backend.refund(meter, now, key, 2, second);
    assert_eq!(left(backend, meter, now, key), 10);

    // To the microsecond: of this charge, all but one of its microseconds is back.
    let key = "late";
    let first = charge(backend, meter, START, key, 1);
    charge(backend, meter, START, key, 1);
    let reset = |backend: &mut _, now| Backend::one(backend, meter, now, key, 0).reset();
    backend.refund(meter, START + UNIT, key, 1, first);
    assert_eq!(u128::from(UNIT), reset(backend, START + UNIT).as_micros());
    let key = "later";
    let first = charge(backend, meter, START, key, 1);
    charge(backend, meter, START, key, 1);
    backend.refund(meter, START + UNIT - 1, key, 1, first);
    let look = backend.one(meter, START + UNIT - 1, key, 0);
    assert_eq!(u128::from(UNIT), look.reset().as_micros());
}

/// A charge that counts no longer gives back nothing, whatever was taken since.
pub(crate) fn a_charge_that_counts_no_longer_gives_back_nothing(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        let window = match algorithm {
            Algorithm::Calendar(unit) => u64::try_from(unit.nominal().as_micros()).unwrap(),
            _ => MINUTE,
        };
        for later in [2 * window, 2 * window + 1, 5 * window / 2, 20 * window] {
            for taken in [0, 1, 6, 10] {
                let key = format!("{algorithm:?}:{later}:{taken}");
                let stamp = charge(backend, meter, START, &key, 10);
                charge(backend, meter, START + later, &key, taken);
                backend.refund(meter, START + later, &key, 10, stamp);
                assert_eq!(left(backend, meter, START + later, &key), 10 - taken, "{key}");
            }
        }
    }
}

/// A log gives back until the moment at which the units would fall out by themselves.
pub(crate) fn a_log_gives_back_to_the_last_microsecond(backend: &mut impl Backend) {
    let meter = by(Algorithm::SlidingLog);
    let end = START + MINUTE;
    for (key, now, before) in [("in", end - 1, 3), ("out", end, 7)] {
        let stamp = charge(backend, meter, START, key, 4);
        charge(backend, meter, START + MINUTE / 2, key, 3);
        assert_eq!(left(backend, meter, now, key), before, "{key}");
        backend.refund(meter, now, key, 4, stamp);
        assert_eq!(left(backend, meter, now, key), 7, "{key}");
        assert_eq!(left(backend, meter, end + MINUTE / 2, key), 10, "{key}");
    }
}

/// A window and a counter give back until the window ends; a counter for one window more, in which
/// what was charged still weighs.
pub(crate) fn windows_give_back_until_they_end(backend: &mut impl Backend) {
    let start = START / MINUTE * MINUTE;
    for (algorithm, more) in [(Algorithm::FixedWindow, 0), (Algorithm::SlidingCounter, MINUTE)] {
        let meter = by(algorithm);
        let end = start + MINUTE + more;
        for (at, now) in [START, start + MINUTE - 1, end - 1].into_iter().enumerate() {
            let key = format!("{algorithm:?}:{at}");
            let stamp = charge(backend, meter, START, &key, 10);
            backend.refund(meter, now, &key, 7, stamp);
            backend.refund(meter, now, &key, 3, stamp);
            let look = backend.one(meter, now, &key, 0);
            assert_eq!((look.remaining(), look.reset().as_micros()), (10, 0), "{key}");
        }
        let key = format!("{algorithm:?}");
        let stamp = charge(backend, meter, START, &key, 10);
        charge(backend, meter, end, &key, 2);
        backend.refund(meter, end, &key, 10, stamp);
        assert_eq!(left(backend, meter, end, &key), 8, "{key}: of the next one nothing");
    }
}

/// A log whose clock stepped back has the units of later moments at now. They are there to be given
/// back to a charge of that very microsecond, and no others.
pub(crate) fn a_log_gives_back_what_a_step_of_the_clock_brought_here(backend: &mut impl Backend) {
    let meter = by(Algorithm::SlidingLog);
    let key = "stepped";
    // Three units of a charge are brought from START + 20 to START, and one is taken at START.
    let early = charge(backend, meter, START + 20, key, 3);
    charge(backend, meter, START, key, 1);
    // As they are at START, the charge finds none of its own.
    backend.refund(meter, START + 10, key, 3, early);
    assert_eq!(left(backend, meter, START + 10, key), 6);
    // Now there is one of its moment, and two of a later one that nobody has asked about since.
    charge(backend, meter, START + 20, key, 1);
    charge(backend, meter, START + 30, key, 2);
    backend.refund(meter, START + 20, key, 3, early);
    assert_eq!(left(backend, meter, START + 20, key), 6);
    assert_eq!(left(backend, meter, START + MINUTE - 1, key), 6);
    assert_eq!(left(backend, meter, START + MINUTE, key), 10);

    // Where some are left, they count from the moment to which the clock stepped back.
    let key = "left";
    let stamp = charge(backend, meter, START, key, 2);
    charge(backend, meter, START + 30, key, 5);
    backend.refund(meter, START, key, 2, stamp);
    let look = backend.one(meter, START, key, 0);
    assert_eq!((look.remaining(), look.reset().as_micros()), (5, u128::from(MINUTE)));
    assert_eq!(left(backend, meter, START + MINUTE - 1, key), 5);
    assert_eq!(left(backend, meter, START + MINUTE, key), 10);

    // Charges of several moments that were brought to one.
    let key = "several";
    charge(backend, meter, START + 10, key, 1);
    charge(backend, meter, START + 20, key, 2);
    let stamp = charge(backend, meter, START, key, 5);
    backend.refund(meter, START, key, 5, stamp);
    assert_eq!(left(backend, meter, START, key), 7);
    assert_eq!(left(backend, meter, START + MINUTE, key), 10);

    // A charge from after now gives nothing back until now is there.
    let key = "ahead";
    let stamp = charge(backend, meter, START + 30, key, 5);
    backend.refund(meter, START + 29, key, 5, stamp);
    assert_eq!(left(backend, meter, START + 29, key), 5);
}

/// A clock that stepped back, and a refund in the middle of it, leave no bucket locked for longer than
/// a refill, and no window above its limit.
pub(crate) fn a_refund_from_after_now_leaves_no_more_than_the_limit(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        for step in [1, UNIT / 2, UNIT, MINUTE, 100 * MINUTE, 500 * 24 * 60 * MINUTE] {
            let key = format!("{algorithm:?}:{step}");
            let stamp = charge(backend, meter, START, &key, 6);
            let now = START - step;
            backend.refund(meter, now, &key, 6, stamp);
            let left = left(backend, meter, now, &key);
            assert!(left <= 10, "{key}: {left}");
            charge(backend, meter, now, &key, left);
            assert!(!backend.one(meter, now, &key, 1).fits(), "{key}");
            let wait = backend.one(meter, now, &key, 10).wait().unwrap().as_micros();
            assert!(wait <= 31 * 24 * 3_600_000_000, "{key}: {wait}");
        }
    }
}

/// A key from which nothing was taken stays one.
pub(crate) fn nothing_comes_back_to_a_key_that_is_not_there(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        let key = format!("{algorithm:?}");
        let stamp = charge(backend, meter, START, &format!("{key}:other"), 5);
        for now in [START, START + 1, START + MINUTE] {
            backend.refund(meter, now, &key, 5, stamp);
            let look = backend.one(meter, now, &key, 0);
            assert_eq!((look.remaining(), look.reset().as_micros()), (10, 0), "{key}");
        }
        charge(backend, meter, START + MINUTE, &key, 10);
        assert!(!backend.one(meter, START + MINUTE, &key, 1).fits(), "{key}");
    }
}

/// What is forgotten has taken nothing, and others have what they had.
pub(crate) fn a_key_that_is_forgotten_begins_anew(backend: &mut impl Backend) {
    for (algorithm, meter) in all() {
        let (key, other) = (format!("{algorithm:?}"), format!("{algorithm:?}:other"));
        let stamp = charge(backend, meter, START, &key, 10);
        charge(backend, meter, START, &other, 7);
        backend.reset(&key);
        let look = backend.one(meter, START, &key, 0);
        assert_eq!((look.remaining(), look.reset().as_micros()), (10, 0), "{key}");
        backend.reset(&key);
        // What was charged before is not there to be given back.
        backend.refund(meter, START, &key, 10, stamp);
        charge(backend, meter, START, &key, 10);
        assert_eq!(left(backend, meter, START, &other), 3, "{key}");
    }
}

/// Over any time, a bucket admits its burst, its rate times the time, and what came back meanwhile.
pub(crate) fn a_bucket_with_refunds_keeps_its_bound(backend: &mut impl Backend) {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let meter = by(Algorithm::TokenBucket);
    for round in 0..60 {
        let (key, mut now) = (format!("bound:{round}"), START);
        // Moments, with units taken above zero and those given back below.
        let mut events: Vec<(u64, i64)> = Vec::new();
        let mut charged: Vec<(u64, Stamp)> = Vec::new();
        for _ in 0..80 {
            now += if rng.bool() { 0 } else { rng.u64(..2 * UNIT) };
            if rng.u8(..3) == 0 && !charged.is_empty() {
                let (units, stamp) = charged.swap_remove(rng.usize(..charged.len()));
                backend.refund(meter, now, &key, units, stamp);
                events.push((now, -i64::try_from(units).unwrap()));
                continue;
            }
            let units = rng.u64(1..=6);
            let standing = backend.one(meter, now, &key, units);
            assert!(standing.remaining() <= 10, "{key}, seed {seed}");
            if standing.fits() {
                charged.push((units, standing.stamp()));
                events.push((now, i64::try_from(units).unwrap()));
            }
        }
        for (at, (from, _)) in events.iter().enumerate() {
            let mut units = 0;
            for (to, change) in &events[at..] {
                units += change;
                let bound = 10 + (to - from) / UNIT;
                assert!(units <= i64::try_from(bound).unwrap(), "{key}, seed {seed}");
            }
        }
    }
}
