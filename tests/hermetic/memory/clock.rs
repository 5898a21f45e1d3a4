//! A clock that steps.

use std::time::Duration;

use tollgate::{Clock, ManualClock, MemoryStore, Quota, Timestamp, algorithm::Meter};

use super::{meters, take, take_by, takes};
use crate::support::{memory, secs};

const QUOTA: Quota = Quota::per_minute(6);

fn step_back(clock: &ManualClock, span: Duration) {
    let back = clock.now().as_micros() - u64::try_from(span.as_micros()).unwrap();
    clock.set(Timestamp::from_micros(back));
}

/// A key that owes `units`, in a store whose clock then stepped back.
fn stepped(units: u64, span: Duration) -> (MemoryStore, ManualClock) {
    let (store, clock) = memory();
    assert!(takes(&store, b"key", QUOTA, units));
    step_back(&clock, span);
    (store, clock)
}

#[test]
fn a_clock_that_steps_back_locks_nobody_out_for_longer_than_a_full_refill() {
    for span in [secs(1), secs(60), secs(3_600), secs(86_400 * 365)] {
        for units in 1..=6 {
            let (store, clock) = stepped(units, span);
            // Also a denied call, or one that only looks, brings the state back.
            take(&store, b"key", QUOTA, units % 3 * 6);
            clock.advance(secs(60));
            assert!(takes(&store, b"key", QUOTA, 6), "{units} units, {span:?} back");
        }
    }
}

#[test]
fn a_small_step_back_costs_no_more_than_the_step() {
    let (store, clock) = stepped(6, secs(3));
    let standing = take(&store, b"key", QUOTA, 1).standings[0];
    assert!(!standing.fits());
    assert_eq!(standing.wait(), Some(secs(10)));
    clock.advance(secs(10));
    assert!(takes(&store, b"key", QUOTA, 1));
}

#[test]
fn what_is_left_and_the_waits_stay_within_the_limit_after_any_step() {
    let (store, clock) = memory();
    for step in 0..2_000_u64 {
        let standing = take(&store, b"key", QUOTA, step % 4).standings[0];
        assert!(standing.remaining() <= 6);
        assert!(standing.reset() <= secs(60));
        assert!(standing.wait().unwrap() <= secs(60));
        match step % 7 {
            0 => step_back(&clock, Duration::from_micros(step * 37_001)),
            rest => clock.advance(Duration::from_micros(rest * 1_234_567)),
        }
    }
}

#[test]
fn the_first_moment_and_the_last_are_times_like_any_other() {
    for micros in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
        for meter in meters(QUOTA) {
            let clock = ManualClock::at(Timestamp::from_micros(micros));
            let store = MemoryStore::builder().clock(clock.clone()).build();
            let takes = |cost| take_by(&store, b"key", meter, cost).standings[0].fits();
            assert!(takes(6), "{meter:?} at {micros}");
            assert!(!takes(1), "{meter:?} at {micros}");
            clock.advance(secs(10));
            takes(1);
        }
    }
}

#[test]
fn a_clock_that_steps_back_locks_no_window_for_longer_than_two_of_them_and_frees_none() {
    let minute = 60_000_000;
    for meter in meters(QUOTA).into_iter().take(4) {
        for step in [1, minute / 2, minute, 90 * minute, 365 * 24 * 60 * minute] {
            let (store, clock) = memory();
            let takes = |cost| take_by(&store, b"key", meter, cost).standings[0];
            assert!(takes(6).fits());
            step_back(&clock, Duration::from_micros(step));
            assert!(!takes(1).fits(), "{meter:?}, {step} us back: nothing is given away");
            let wait = takes(6).wait().unwrap();
            assert!(wait <= secs(120), "{meter:?}, {step} us back: {wait:?}");
            clock.advance(wait);
            assert!(takes(6).fits(), "{meter:?}, {step} us back, after {wait:?}");
        }
    }
}

#[test]
fn one_name_that_is_counted_by_another_algorithm_begins_anew_and_is_limited() {
    let (store, _) = memory();
    for meter in meters(QUOTA) {
        // Only a store's own user can do that: the names of limits hold their algorithm.
        let takes = |cost| take_by(&store, b"key", meter, cost).standings[0].fits();
        let fresh = takes(6);
        assert!(!takes(1), "{meter:?}");
        assert!(fresh || matches!(meter, Meter::FixedWindow(_)), "{meter:?}");
    }
}
