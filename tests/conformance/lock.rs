//! Locks: when they begin and end, whatever is asked meanwhile.

use std::time::Duration;

use tollgate::{Algorithm, Lockout, Quota, Standing, algorithm::Meter};

use super::{Backend, START, bucket, windows};

const MINUTE: u64 = 60_000_000;
const HOUR: u64 = 60 * MINUTE;

/// A lock of an hour, for two units a minute, which remembers denials for a minute.
fn lock(after: u64) -> Meter {
    let lockout = Lockout::new(Duration::from_micros(HOUR)).after(after);
    Meter::Lock(lockout.lock(Quota::per_minute(2)))
}

fn guarded(after: u64) -> [Meter; 2] {
    [bucket(Quota::per_minute(2)), lock(after)]
}

/// Takes all of a key, so that a request of two is denied for the next minute.
fn drained(backend: &mut impl Backend, meters: [Meter; 2], now: u64, key: &str) {
    assert!(backend.guarded(meters, now, key, 2).iter().all(Standing::fits), "{key}");
}

/// What a lock says: whether it admits, denials until it locks, and microseconds until they are
/// forgotten or it ends.
fn told(standings: [Standing; 2]) -> (bool, u64, u64) {
    let lock = standings[1];
    (lock.fits(), lock.remaining(), u64::try_from(lock.reset().as_micros()).unwrap())
}

/// Each denial counts, and the one of the number locks at once.
pub(crate) fn the_denial_of_the_number_locks(backend: &mut impl Backend) {
    let limits = windows(2, MINUTE).into_iter();
    let bucket = (Algorithm::TokenBucket, bucket(Quota::per_minute(2)));
    for (algorithm, limit) in limits.chain([bucket]) {
        for after in 1..=4 {
            let (meters, key) = ([limit, lock(after)], format!("{algorithm:?}:{after}"));
            assert_eq!(told(backend.guarded(meters, START, &key, 0)), (true, after, 0), "{key}");
            drained(backend, meters, START, &key);
            assert_eq!(told(backend.guarded(meters, START, &key, 0)), (true, after, 0), "{key}");
            for denials in 1..after {
                let [hit, lock] = backend.guarded(meters, START, &key, 1);
                assert!(!hit.fits(), "{key}");
                assert_eq!(told([hit, lock]), (true, after - denials, MINUTE), "{key}");
            }
            assert_eq!(told(backend.guarded(meters, START, &key, 1)), (false, 0, HOUR), "{key}");
            // What never fits is denied as well, and who only looks is not.
            let key = format!("{key}:never");
            for _ in 1..after {
                backend.guarded(meters, START, &key, 3);
                backend.guarded(meters, START, &key, 0);
            }
            assert_eq!(told(backend.guarded(meters, START, &key, 0)).1, 1, "{key}");
            assert_eq!(told(backend.guarded(meters, START, &key, 3)), (false, 0, HOUR), "{key}");
        }
    }
}

/// A lock ends at its microsecond, and until then nothing is charged, though the limit has all back.
pub(crate) fn a_lock_ends_to_the_microsecond(backend: &mut impl Backend) {
    let meters = guarded(1);
    drained(backend, meters, START, "k");
    backend.guarded(meters, START, "k", 1);
    let end = START + HOUR;
    for now in [START + MINUTE, end - 2, end - 1] {
        let [hit, lock] = backend.guarded(meters, now, "k", 2);
        assert_eq!((hit.fits(), hit.remaining()), (true, 2), "the limit has all, and keeps it");
        assert_eq!((lock.fits(), lock.remaining()), (false, 0));
        assert_eq!(lock.wait(), Some(Duration::from_micros(end - now)));
        // Who only looks is told the same.
        let [_, look] = backend.guarded(meters, now, "k", 0);
        assert_eq!((look.fits(), look.remaining(), look.wait()), (true, 0, lock.wait()));
    }
    let [hit, lock] = backend.guarded(meters, end, "k", 2);
    assert_eq!((hit.fits(), hit.remaining()), (true, 0));
    assert_eq!(told([hit, lock]), (true, 1, 0));
    // The next lock begins as the first did.
    assert_eq!(told(backend.guarded(meters, end, "k", 1)), (false, 0, HOUR));
}

/// However often a client asks, with whatever cost, the lock ends when it was to.
pub(crate) fn asking_does_not_prolong_a_lock(backend: &mut impl Backend) {
    for after in [1, 3] {
        let (meters, key) = (guarded(after), format!("k{after}"));
        drained(backend, meters, START, &key);
        for _ in 0..after {
            backend.guarded(meters, START, &key, 1);
        }
        for asked in (1..HOUR).step_by(61_000_001) {
            for cost in [0, 1, 2, 3] {
                let standings = backend.guarded(meters, START + asked, &key, cost);
                assert_eq!(told(standings), (cost == 0, 0, HOUR - asked), "{key}");
            }
        }
        assert!(backend.guarded(meters, START + HOUR, &key, 2).iter().all(Standing::fits));
    }
}

/// Denials are forgotten a fixed time after the first of them, not after the last.
pub(crate) fn denials_are_forgotten_a_refill_after_the_first(backend: &mut impl Backend) {
    let meters = guarded(3);
    // What never fits is denied, though all units are there.
    let mut deny = |at: u64, key: &str| told(backend.guarded(meters, START + at, key, 3));
    for (key, third, expected) in
        [("in", MINUTE - 1, (false, 0, HOUR)), ("out", MINUTE, (true, 2, MINUTE))]
    {
        assert_eq!(deny(0, key), (true, 2, MINUTE), "{key}");
        assert_eq!(deny(MINUTE / 2, key), (true, 1, MINUTE / 2), "{key}");
        assert_eq!(deny(third, key), expected, "{key}");
    }
    // An admitted request does not change what is remembered.
    assert_eq!(deny(0, "k"), (true, 2, MINUTE));
    assert_eq!(told(backend.guarded(meters, START + 1, "k", 2)), (true, 2, MINUTE - 1));
}

/// A clock that steps back keeps a key locked for no longer than the lock is long, and one that steps
/// forward ends it.
pub(crate) fn no_step_of_the_clock_locks_for_longer(backend: &mut impl Backend) {
    for step in [1, MINUTE, HOUR, 24 * HOUR, 20 * 365 * 24 * HOUR] {
        let (meters, key) = (guarded(1), format!("back:{step}"));
        drained(backend, meters, START, &key);
        backend.guarded(meters, START, &key, 1);
        let back = START - step;
        for _ in 0..3 {
            assert_eq!(told(backend.guarded(meters, back, &key, 1)), (false, 0, HOUR), "{key}");
        }
        let last = told(backend.guarded(meters, back + HOUR - 1, &key, 1));
        assert_eq!(last, (false, 0, 1), "{key}");
        assert!(backend.guarded(meters, back + HOUR, &key, 2)[1].fits(), "{key}");

        let key = format!("forth:{step}");
        drained(backend, meters, START, &key);
        backend.guarded(meters, START, &key, 1);
        let after = told(backend.guarded(meters, START + step.max(HOUR), &key, 0));
        assert_eq!(after, (true, 1, 0), "{key}");
    }
}

/// A shorter lock that is configured later shortens one that is set; a longer one does not prolong it.
pub(crate) fn a_changed_length_only_shortens_what_is_locked(backend: &mut impl Backend) {
    let lock = |minutes| {
        let lockout = Lockout::new(Duration::from_micros(minutes * MINUTE));
        [bucket(Quota::per_minute(2)), Meter::Lock(lockout.lock(Quota::per_minute(2)))]
    };
    drained(backend, lock(60), START, "k");
    backend.guarded(lock(60), START, "k", 1);
    let told_at = |backend: &mut _, minutes, now| {
        told(Backend::guarded(backend, lock(minutes), now, "k", 1)).2
    };
    assert_eq!(told_at(backend, 600, START + MINUTE), 59 * MINUTE);
    assert_eq!(told_at(backend, 10, START + MINUTE), 10 * MINUTE);
    assert_eq!(told_at(backend, 600, START + 2 * MINUTE), 9 * MINUTE);
}

/// Forgetting a lock lifts it, and forgets its denials.
pub(crate) fn a_lock_that_is_forgotten_is_lifted(backend: &mut impl Backend) {
    for after in [1, 2] {
        let (meters, key) = (guarded(after), format!("k{after}"));
        drained(backend, meters, START, &key);
        for _ in 0..after {
            backend.guarded(meters, START, &key, 1);
        }
        backend.reset(&key);
        assert_eq!(told(backend.guarded(meters, START, &key, 0)).1, 0, "the lock is another key");
        backend.reset_lock(&key);
        assert_eq!(told(backend.guarded(meters, START, &key, 2)), (true, after, 0), "{key}");
        backend.guarded(meters, START, &key, 1);
        assert_eq!(told(backend.guarded(meters, START, &key, 0)).1, after - 1, "{key}");
    }
}
