//! When a lock ends.

use tollgate::{Clock, Limit, Lockout, Quota};

use super::{MICRO, ask, denied, locked, tries};
use crate::support::{limiters, secs};

#[tokio::test]
async fn it_ends_to_the_microsecond_and_then_all_units_are_there() {
    for (limiter, clock) in limiters() {
        let limit = tries(1);
        let wait = denied(&limiter, &limit, 1).await.retry_after().unwrap();
        clock.advance(wait - MICRO);
        let last = ask(&limiter, &limit).await;
        assert!(last.is_locked());
        assert_eq!(last.retry_after(), Some(MICRO));
        clock.advance(MICRO);
        assert_eq!(locked(&limiter, &limit).await, None);
        for _ in 0..2 {
            assert!(ask(&limiter, &limit).await.is_allowed());
        }
        assert!(ask(&limiter, &limit).await.is_locked());
    }
}

#[tokio::test]
async fn asking_meanwhile_does_not_prolong_it() {
    for (limiter, clock) in limiters() {
        let limit = tries(2);
        denied(&limiter, &limit, 2).await;
        for second in 1..600 {
            clock.advance(secs(1));
            let decision = ask(&limiter, &limit).await;
            assert_eq!(decision.retry_after(), Some(secs(600 - second)));
            assert!(decision.is_locked());
        }
        clock.advance(secs(1));
        assert!(ask(&limiter, &limit).await.is_allowed());
    }
}

#[tokio::test]
async fn denials_before_it_and_during_it_are_forgotten_with_it() {
    for (limiter, clock) in limiters() {
        let limit = tries(2);
        denied(&limiter, &limit, 9).await;
        clock.advance(secs(600));
        assert!(!denied(&limiter, &limit, 1).await.is_locked());
        assert!(denied(&limiter, &limit, 1).await.is_locked());
    }
}

#[tokio::test]
async fn what_a_locked_key_asks_for_is_not_charged() {
    for (limiter, clock) in limiters() {
        let limit = Limit::new("tries", Quota::per_hour(60).burst(2));
        let limit = limit.lockout(Lockout::new(secs(120)));
        let other = Limit::new("other", Quota::per_day(50));
        denied(&limiter, &limit, 1).await;
        // The bucket has been full again for long before the lock ends.
        for _ in 0..119 {
            clock.advance(secs(1));
            let pairs = [(&limit, "user"), (&other, "user")];
            assert!(limiter.check_all(pairs).await.unwrap().is_locked());
        }
        clock.advance(secs(1));
        for _ in 0..2 {
            assert!(ask(&limiter, &limit).await.is_allowed());
        }
        assert_eq!(crate::support::left(&limiter, &other, "user").await, 50);
    }
}

#[tokio::test]
async fn a_reset_lifts_it_and_forgets_its_denials() {
    for (limiter, _clock) in limiters() {
        let limit = tries(2);
        denied(&limiter, &limit, 2).await;
        limiter.reset(&limit, "another").await.unwrap();
        assert_eq!(locked(&limiter, &limit).await, Some(secs(600)));
        limiter.reset(&limit, "user").await.unwrap();
        assert_eq!(locked(&limiter, &limit).await, None);
        assert!(ask(&limiter, &limit).await.is_allowed());
        // A denial that was not yet enough goes, too.
        denied(&limiter, &limit, 1).await;
        limiter.reset(&limit, "user").await.unwrap();
        assert!(!denied(&limiter, &limit, 1).await.is_locked());
    }
}

#[tokio::test]
async fn a_shorter_length_ends_locks_earlier_and_a_longer_one_leaves_them() {
    let with = |length| {
        let limit = Limit::new("tries", Quota::per_minute(2));
        limit.lockout(Lockout::new(secs(length)))
    };
    for (limiter, clock) in limiters() {
        denied(&limiter, &with(600), 1).await;
        clock.advance(secs(100));
        assert_eq!(locked(&limiter, &with(3_600)).await, Some(secs(500)));
        assert_eq!(locked(&limiter, &with(499)).await, Some(secs(499)));
        assert_eq!(locked(&limiter, &with(60)).await, Some(secs(60)));
        // The shorter length holds from when it was first seen on.
        clock.advance(secs(59));
        assert_eq!(ask(&limiter, &with(60)).await.retry_after(), Some(secs(1)));
        clock.advance(secs(1));
        assert!(ask(&limiter, &with(60)).await.is_allowed());
    }
}

#[tokio::test]
async fn it_outlasts_a_change_of_the_quota() {
    for (limiter, clock) in limiters() {
        denied(&limiter, &tries(1), 1).await;
        clock.advance(secs(1));
        for quota in [Quota::per_minute(99), Quota::per_second(99), Quota::per_minute(2).burst(1)] {
            let limit = Limit::new("tries", quota).lockout(Lockout::new(secs(600)));
            let decision = ask(&limiter, &limit).await;
            assert!(decision.is_locked(), "{quota}");
            assert_eq!(decision.retry_after(), Some(secs(599)), "{quota}");
        }
    }
}

#[tokio::test]
async fn more_denials_configured_later_lift_a_lock_that_fewer_had_set() {
    for (limiter, clock) in limiters() {
        denied(&limiter, &tries(1), 1).await;
        clock.advance(secs(60));
        assert_eq!(locked(&limiter, &tries(2)).await, None);
        assert!(ask(&limiter, &tries(2)).await.is_allowed());
    }
}

#[tokio::test]
async fn a_clock_that_stepped_back_locks_for_no_longer_than_the_length() {
    for back in [1, 599, 600, 86_400] {
        for (limiter, clock) in limiters() {
            let limit = tries(1);
            clock.advance(secs(100_000));
            let set = clock.now();
            denied(&limiter, &limit, 1).await;
            let earlier = set.as_micros() - back * 1_000_000;
            clock.set(tollgate::Timestamp::from_micros(earlier));
            // Also for one who only asks, and is denied.
            assert_eq!(ask(&limiter, &limit).await.retry_after(), Some(secs(600)), "{back}");
            clock.advance(secs(600) - MICRO);
            assert!(ask(&limiter, &limit).await.is_locked(), "{back}");
            clock.advance(MICRO);
            assert!(ask(&limiter, &limit).await.is_allowed(), "{back}");
        }
    }
}

#[tokio::test]
async fn the_longest_lock_that_there_can_be_is_kept_and_lifted() {
    for (limiter, clock) in limiters() {
        let years = secs(10 * 365 * 86_400);
        let limit = Limit::new("tries", Quota::per_minute(2)).lockout(Lockout::new(years));
        assert_eq!(denied(&limiter, &limit, 1).await.retry_after(), Some(years));
        clock.advance(years - MICRO);
        assert!(ask(&limiter, &limit).await.is_locked());
        limiter.reset(&limit, "user").await.unwrap();
        assert!(ask(&limiter, &limit).await.is_allowed());
    }
}
