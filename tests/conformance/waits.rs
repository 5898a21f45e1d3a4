//! Waits, exact to the microsecond, of algorithms other than the bucket.

use tollgate::Standing;

use super::{Backend, START, windows};

/// Whole microseconds; the counter's ticks are longer in the last ones, and do not divide them.
const WINDOWS: [u64; 6] = [1_000, 7_003, 1_000_000, 60_000_000, 3_600_000_001, 86_400_000_000];
const LIMITS: [u64; 4] = [1, 3, 10, 64];

fn wait(standing: Standing) -> Option<u64> {
    standing.wait().map(|wait| u64::try_from(wait.as_micros()).unwrap())
}

/// Who waits as long as he was told, alone on his key, is admitted, and a microsecond earlier he is
/// not: whatever was taken before, and when.
pub(crate) fn waits_of_windows_to_the_microsecond(backend: &mut impl Backend) {
    let (mut denied, mut tried) = (0, 0);
    for window in WINDOWS {
        for limit in LIMITS {
            for (algorithm, meter) in windows(limit, window) {
                for (n, cost) in [1, 3, limit / 2 + 1, limit].into_iter().enumerate() {
                    for (at, gap) in [0, 1, window / 17 + 1, window / 3].into_iter().enumerate() {
                        tried += 1;
                        if tried % backend.in_part() > 0 {
                            continue;
                        }
                        let key = format!("{algorithm:?}:{window}:{limit}:{cost}:{n}:{at}");
                        let mut now = START;
                        for _ in 0..limit / 2 {
                            assert!(backend.one(meter, now, &key, 1).fits() || gap > 0, "{key}");
                            now += gap;
                        }
                        denied += patient(backend, meter, now, &key, (limit, cost));
                    }
                }
            }
        }
    }
    assert!(denied * u64::from(backend.in_part()) > 5_000, "few waits were tried: {denied}");
}

/// Takes `cost` units as soon as it is told to, again and again. How often it had to wait.
fn patient(
    backend: &mut impl Backend,
    meter: tollgate::algorithm::Meter,
    mut now: u64,
    key: &str,
    (limit, cost): (u64, u64),
) -> u64 {
    let mut waits = 0;
    let mut last = backend.one(meter, now, key, cost);
    if cost > limit {
        assert_eq!((last.fits(), last.wait()), (false, None), "{key}: it never passes");
        return 0;
    }
    for round in 0..8 {
        let left = wait(last).unwrap();
        assert!(last.fits() || left > 0, "{key}: denied, and told to come at once");
        if left > 0 {
            waits += 1;
            let early = backend.one(meter, now + left - 1, key, cost);
            assert_eq!((early.fits(), wait(early)), (false, Some(1)), "{key}, early, {round}");
        }
        now += left;
        last = backend.one(meter, now, key, cost);
        assert!(last.fits(), "{key}: after the wait of {left} us, {round}");
    }
    waits
}

/// All units can be taken at once, one by one or together, and not one more.
pub(crate) fn windows_hold_all_units_and_no_more(backend: &mut impl Backend) {
    for limit in [1, 2, 7, 100, 1_000] {
        for (algorithm, meter) in windows(limit, 60_000_000) {
            let key = format!("{algorithm:?}:{limit}");
            for left in (0..limit).rev() {
                let standing = backend.one(meter, START, &key, 1);
                assert_eq!((standing.fits(), standing.remaining()), (true, left), "{key}");
            }
            for cost in [1, 2, limit] {
                let more = backend.one(meter, START, &key, cost);
                assert_eq!((more.fits(), more.remaining()), (false, 0), "{key}");
            }
            let key = format!("{key}:together");
            let more = backend.one(meter, START, &key, limit + 1);
            assert_eq!((more.fits(), more.remaining()), (false, limit), "{key}");
            let all = backend.one(meter, START, &key, limit);
            assert_eq!((all.fits(), all.remaining()), (true, 0), "{key}");
        }
    }
}

/// Who only looks is told what is left and how long until a unit is free, and takes nothing.
pub(crate) fn looks_take_nothing(backend: &mut impl Backend) {
    for (algorithm, meter) in windows(5, 60_000_000) {
        let key = format!("{algorithm:?}");
        for taken in 0..5 {
            for _ in 0..3 {
                let look = backend.one(meter, START, &key, 0);
                let seen = (look.fits(), look.remaining(), wait(look));
                assert_eq!(seen, (true, 5 - taken, Some(0)), "{key}");
                assert_eq!(look.reset().is_zero(), taken == 0, "{key}");
            }
            assert!(backend.one(meter, START, &key, 1).fits(), "{key}");
        }
        let look = backend.one(meter, START, &key, 0);
        assert_eq!((look.fits(), look.remaining()), (true, 0), "{key}");
        let free = START + wait(look).unwrap();
        assert_eq!(backend.one(meter, free - 1, &key, 0).remaining(), 0, "{key}");
        assert!(backend.one(meter, free, &key, 0).remaining() > 0, "{key}");
    }
}
