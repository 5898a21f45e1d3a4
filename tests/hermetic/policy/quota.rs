//! A quota that cannot be kept is refused where it is made, with its value and the bound.

use std::{hint::black_box, panic::catch_unwind, time::Duration};

use tollgate::Quota;

use crate::support::secs;

fn refused(quantity: u64, period: Duration) -> String {
    Quota::new(quantity, period).unwrap_err().to_string()
}

#[test]
fn nothing_per_period_is_refused() {
    assert_eq!(
        refused(0, secs(60)),
        "a quota of 0 per 60 s with a burst of 0: the quantity must be at least 1"
    );
}

#[test]
fn a_period_of_no_length_is_refused() {
    assert_eq!(
        refused(5, Duration::ZERO),
        "a quota of 5 per 0 s with a burst of 5: the period must be longer than 0"
    );
}

#[test]
fn a_burst_of_nothing_is_refused() {
    assert_eq!(
        Quota::per_minute(5).try_burst(0).unwrap_err().to_string(),
        "a quota of 5 per 60 s with a burst of 0: the burst must be at least 1"
    );
}

#[test]
fn a_period_above_ten_years_is_refused() {
    let years = secs(315_360_000);
    assert!(Quota::new(1, years).is_ok());
    assert_eq!(
        refused(1_000, years + Duration::from_nanos(1)),
        "a quota of 1000 per 315360000000000001 ns with a burst of 1000: \
         the period must be at most 10 years (315360000 s)"
    );
    assert!(
        refused(1, Duration::MAX).ends_with("the period must be at most 10 years (315360000 s)")
    );
}

#[test]
fn more_than_a_unit_per_nanosecond_is_refused() {
    let message = "a quota of 2000000000 per 1 s with a burst of 2000000000: \
                   a unit may come back at most every nanosecond; \
                   for this period the quantity must be at most 1000000000";
    assert_eq!(refused(2_000_000_000, secs(1)), message);
    assert!(Quota::new(1_000_000_000, secs(1)).is_ok());
    assert!(refused(u64::MAX, secs(60)).ends_with("the quantity must be at most 60000000000"));
    assert!(Quota::new(60_000_000_000, secs(60)).is_ok());
}

#[test]
fn a_burst_below_what_comes_back_in_a_microsecond_is_refused() {
    let fast = Quota::per_second(3_000_000);
    assert_eq!(
        fast.try_burst(2).unwrap_err().to_string(),
        "a quota of 3000000 per 1 s with a burst of 2: \
         the burst must hold what comes back in one microsecond, at least 3"
    );
    assert!(fast.try_burst(3).is_ok());
    assert!(Quota::per_second(1_000_000).try_burst(1).is_ok());
    assert!(Quota::new(1, Duration::from_nanos(1)).is_err());
}

#[test]
fn a_burst_that_takes_more_than_ten_years_to_come_back_is_refused() {
    let daily = Quota::per_day(1);
    assert_eq!(
        daily.try_burst(3_651).unwrap_err().to_string(),
        "a quota of 1 per 86400 s with a burst of 3651: \
         the whole burst must come back within 10 years (315360000 s); \
         at this rate the burst must be at most 3650"
    );
    // Also where the arithmetic would leave 64 bits.
    for quota in [daily, Quota::per_second(1), Quota::per_second(1_000_000_000)] {
        let message = quota.try_burst(u64::MAX).unwrap_err().to_string();
        let (_, bound) = message.rsplit_once(' ').unwrap();
        let bound = bound.parse().unwrap();
        assert!(quota.try_burst(bound).is_ok(), "{message}");
        assert!(quota.try_burst(bound + 1).is_err(), "{message}");
    }
}

fn panics(make: impl FnOnce() -> Quota + std::panic::UnwindSafe) -> String {
    let payload = catch_unwind(make).unwrap_err();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap().to_owned()
}

#[test]
fn a_literal_that_cannot_be_kept_panics_with_the_same_words() {
    type Make = fn(u64) -> Quota;
    let literals: [(Make, u64); 4] = [
        (Quota::per_second, 1),
        (Quota::per_minute, 60),
        (Quota::per_hour, 3_600),
        (Quota::per_day, 86_400),
    ];
    for (make, period) in literals {
        for quantity in [0, u64::MAX] {
            let words = refused(quantity, secs(period));
            assert_eq!(panics(move || make(black_box(quantity))), words);
        }
    }
    let words = Quota::per_day(7).try_burst(0).unwrap_err().to_string();
    assert_eq!(panics(|| Quota::per_day(7).burst(black_box(0))), words);
}

#[test]
fn a_quota_in_a_constant_is_checked_by_the_compiler() {
    const API: Quota = Quota::per_minute(600).burst(50);
    const NEW: Quota = match Quota::new(3, Duration::from_millis(1)) {
        Ok(quota) => quota,
        Err(_) => panic!("three a millisecond can be kept"),
    };
    assert_eq!([API.quantity(), API.capacity(), NEW.quantity()], [600, 50, 3]);
}
