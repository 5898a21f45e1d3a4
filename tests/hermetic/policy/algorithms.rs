//! What an algorithm cannot keep is refused, and says why.

use tollgate::{Algorithm, Calendar, Global, Limit, Policy, Quota, StoreErrorKind};

use crate::support::{limiter, secs};

fn refused(limit: Limit) -> String {
    Policy::new("api").limit(Global, limit).build().unwrap_err().to_string()
}

fn builds(limit: Limit) -> bool {
    Policy::new("api").limit(Global, limit).build().is_ok()
}

fn limit(quota: Quota, algorithm: Algorithm) -> Limit {
    Limit::new("l", quota).algorithm(algorithm)
}

const WINDOWS: [Algorithm; 3] =
    [Algorithm::SlidingLog, Algorithm::SlidingCounter, Algorithm::FixedWindow];

#[test]
fn only_a_bucket_has_a_burst() {
    let quota = Quota::per_minute(10).burst(3);
    assert!(builds(limit(quota, Algorithm::TokenBucket)));
    for algorithm in WINDOWS {
        assert_eq!(
            refused(limit(quota, algorithm)),
            "the limit `l` has a burst of 3 beside a quantity of 10: only a token bucket has a burst"
        );
        assert!(builds(limit(quota.burst(10), algorithm)));
    }
}

#[test]
fn a_window_is_whole_microseconds() {
    let odd = Quota::new(1, std::time::Duration::from_nanos(1_500)).unwrap();
    assert!(builds(limit(odd, Algorithm::TokenBucket)));
    for algorithm in WINDOWS {
        assert_eq!(
            refused(limit(odd, algorithm)),
            "the limit `l` has a period of 1.5\u{b5}s: a window must be whole microseconds"
        );
    }
}

#[test]
fn each_algorithm_has_its_largest_quantity() {
    let year = secs(365 * 86_400);
    for (algorithm, most) in [
        (Algorithm::SlidingLog, 100_000),
        (Algorithm::SlidingCounter, 1 << 31),
        (Algorithm::FixedWindow, 1 << 52),
    ] {
        let quota = |units| Quota::new(units, if units >> 50 == 0 { year } else { 10 * year });
        let Ok(largest) = quota(most) else { continue };
        assert!(builds(limit(largest, algorithm)), "{algorithm:?}");
        let Ok(larger) = quota(most + 1) else { continue };
        assert_eq!(
            refused(limit(larger, algorithm)),
            format!(
                "the limit `l` has a quantity of {}: with this algorithm it is at most {most}",
                most + 1
            )
        );
    }
}

#[test]
fn a_log_takes_at_most_a_thousand_at_once() {
    let log = limit(Quota::per_hour(5_000), Algorithm::SlidingLog);
    assert!(builds(log.clone().cost(1_000)));
    assert_eq!(
        refused(log.cost(1_001)),
        "the limit `l` has a cost of 1001: a sliding log takes at most 1000 at once"
    );
}

#[test]
fn the_calendar_has_its_own_periods() {
    for (unit, days) in [(Calendar::Day, 1), (Calendar::Week, 7), (Calendar::Month, 31)] {
        let quota = |days: u64| Quota::new(10, secs(days * 86_400)).unwrap();
        assert!(builds(limit(quota(days), Algorithm::Calendar(unit))));
        assert!(builds(Limit::calendar("l", 10, unit)));
        assert_eq!(
            refused(limit(quota(30), Algorithm::Calendar(unit))),
            format!(
                "the limit `l` has a period of 2592000s: this unit of the calendar has {}s; \
                 `Limit::calendar` knows it",
                days * 86_400
            )
        );
    }
}

#[tokio::test]
async fn what_an_algorithm_cannot_keep_is_refused_without_a_policy_too() {
    let (limiter, _) = limiter();
    let limit = limit(Quota::per_hour(5_000), Algorithm::SlidingLog).cost(1_001);
    let error = limiter.check(&limit, "user").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("at most 1000 at once"), "{error}");
}

#[test]
#[should_panic(expected = "0 per 86400 s")]
fn a_calendar_limit_of_nothing_panics_with_the_bound() {
    let _ = Limit::calendar("l", 0, Calendar::Day);
}

#[test]
#[should_panic(expected = "per 2678400 s")]
fn a_calendar_limit_beyond_all_bounds_panics_with_the_bound() {
    let _ = Limit::calendar("l", u64::MAX, Calendar::Month);
}
