//! A lockout that cannot be kept is refused, and says why.

use http::StatusCode;
use tollgate::{Calendar, Global, Limit, Lockout, Policy, Quota, StoreErrorKind};

use super::MICRO;
use crate::support::{limiter, secs};

fn build(limit: Limit) -> Result<(), String> {
    let policy = Policy::new("api").limit(Global, limit).build();
    policy.map(drop).map_err(|error| error.to_string())
}

fn with(lockout: Lockout) -> Result<(), String> {
    build(Limit::new("tries", Quota::per_minute(5)).lockout(lockout))
}

const MINUTE: Lockout = Lockout::new(secs(60));

#[test]
fn a_lock_lasts_for_at_least_a_refill() {
    let refused = |length: &str, refill: &str| {
        let start = "the limit `tries` has a lockout of";
        Err(format!("{start} {length}: it must be at least the refill time, {refill}"))
    };
    assert_eq!(with(MINUTE), Ok(()));
    assert_eq!(with(Lockout::new(secs(0))), refused("0ns", "60s"));
    assert_eq!(with(Lockout::new(secs(60) - MICRO)), refused("59.999999s", "60s"));
    // Of what a bucket holds, not of its rate.
    let bucket = |burst| Limit::new("tries", Quota::per_minute(5).burst(burst)).lockout(MINUTE);
    assert_eq!(build(bucket(1)), Ok(()));
    assert_eq!(build(bucket(6)), refused("60s", "72s"));
    let plan = Limit::calendar("tries", 5, Calendar::Day).lockout(MINUTE);
    assert_eq!(build(plan), refused("60s", "86400s"));
}

#[test]
fn a_lock_lasts_for_at_most_ten_years() {
    let years = secs(315_360_000);
    assert_eq!(with(Lockout::new(years)), Ok(()));
    for (length, text) in [
        (years + MICRO, "315360000.000001s"),
        (std::time::Duration::MAX, "18446744073709551615.999999999s"),
    ] {
        let start = "the limit `tries` has a lockout of";
        let message = format!("{start} {text}: it must be at most 10 years (315360000 s)");
        assert_eq!(with(Lockout::new(length)), Err(message));
    }
}

#[test]
fn a_lock_is_set_by_some_denial() {
    for after in [1, 2, 1_000_000_000] {
        assert_eq!(with(MINUTE.after(after)), Ok(()));
    }
    for after in [0, 1_000_000_001, u64::MAX] {
        let message = format!(
            "the limit `tries` has a lockout after {after} denials: it must be 1 to 1000000000"
        );
        assert_eq!(with(MINUTE.after(after)), Err(message));
    }
}

#[test]
fn a_locked_key_is_answered_as_the_clients_fault() {
    for status in [400, 403, 423, 429, 499] {
        assert_eq!(with(MINUTE.status(StatusCode::from_u16(status).unwrap())), Ok(()));
    }
    for status in [100, 200, 302, 399, 500, 503, 999] {
        let status = StatusCode::from_u16(status).unwrap();
        let message = format!(
            "the limit `tries` has a lockout with status {status}: \
             it must be a client error, 400 to 499"
        );
        assert_eq!(with(MINUTE.status(status)), Err(message));
    }
}

#[test]
fn a_shadow_locks_nothing() {
    let limit = Limit::new("tries", Quota::per_minute(5));
    for shadow in [limit.clone().shadow().lockout(MINUTE), limit.lockout(MINUTE).shadow()] {
        let message =
            "the limit `tries` is a shadow with a lockout: what denies nothing locks nothing";
        assert_eq!(build(shadow), Err(message.into()));
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_without_a_policy_too() {
    let (limiter, _clock) = limiter();
    let limit = Limit::new("tries", Quota::per_minute(5)).lockout(MINUTE.after(0));
    for answer in [limiter.check(&limit, "user").await, limiter.look(&limit, "user").await] {
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
        assert!(error.to_string().contains("after 0 denials"), "{error}");
    }
}
