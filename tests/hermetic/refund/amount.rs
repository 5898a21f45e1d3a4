//! How much a refund gives back.

use std::time::Duration;

use tollgate::{Algorithm, Calendar, Limit, Limiter, Quota};

use super::{by, left, take, tries};
use crate::support::{ALGORITHMS, limiters, secs};

const MICRO: Duration = Duration::from_micros(1);

#[tokio::test]
async fn a_refund_makes_it_as_if_the_request_had_not_been() {
    let plan = Limit::calendar("plan", 7, Calendar::Month);
    for limit in ALGORITHMS.map(|algorithm| by(algorithm, 7)).into_iter().chain([plan]) {
        for (limiter, clock) in limiters() {
            let decision = take(&limiter, &limit, 3).await;
            decision.refund().await.unwrap();
            let look = limiter.look(&limit, "user").await.unwrap();
            let standing = look.binding().unwrap().standing();
            assert_eq!(standing.remaining(), 7, "{:?}", limit.counts_by());
            assert_eq!(standing.reset(), Duration::ZERO, "{:?}", limit.counts_by());
            clock.advance(secs(1));
            take(&limiter, &limit, 7).await;
        }
    }
}

#[tokio::test]
async fn a_key_that_has_nothing_left_gets_its_units_back_and_no_more() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 5);
            take(&limiter, &limit, 3).await;
            clock.advance(MICRO);
            let decision = take(&limiter, &limit, 2).await;
            assert!(!limiter.check(&limit, "user").await.unwrap().is_allowed());
            limiter.refund(&decision).await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 2, "{algorithm:?}");
            let decision = limiter.check(&limit.clone().cost(3), "user").await.unwrap();
            assert!(!decision.is_allowed(), "{algorithm:?}");
            take(&limiter, &limit, 2).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_ever_left_above_the_limit() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 5);
            for pause in [0, 1, 13, 59, 60, 61, 119, 120, 300] {
                let decisions = [take(&limiter, &limit, 2).await, take(&limiter, &limit, 3).await];
                clock.advance(secs(pause));
                for decision in decisions {
                    decision.refund().await.unwrap();
                    assert!(left(&limiter, &limit).await <= 5, "{algorithm:?} {pause}");
                }
                assert!(!limiter.check(&limit.clone().cost(6), "user").await.unwrap().is_allowed());
                limiter.reset(&limit, "user").await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_refund_to_a_key_that_owes_nothing_leaves_it_as_it_is() {
    for algorithm in ALGORITHMS {
        for (limiter, _clock) in limiters() {
            let limit = by(algorithm, 5);
            let decision = take(&limiter, &limit, 4).await;
            limiter.reset(&limit, "user").await.unwrap();
            decision.refund().await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 5, "{algorithm:?}");
            take(&limiter, &limit, 5).await;
        }
    }
}

/// What is left of 5 after a charge of 4, a pause, one of 3 that others made, and a refund of the first.
async fn after_pause(
    limiter: &Limiter,
    clock: &tollgate::ManualClock,
    limit: &Limit,
    pause: Duration,
) -> u64 {
    let first = take(limiter, limit, 4).await;
    clock.advance(pause);
    take(limiter, limit, 3).await;
    first.refund().await.unwrap();
    left(limiter, limit).await
}

#[tokio::test]
async fn after_its_window_a_charge_takes_nothing_from_those_of_the_next() {
    // The clock begins at a full minute, and the charge of a counter weighs for two windows.
    let bucket = (Algorithm::TokenBucket, 48);
    let others = [(Algorithm::SlidingLog, 60), (Algorithm::FixedWindow, 60)];
    for (algorithm, pause) in [bucket, (Algorithm::SlidingCounter, 120)].into_iter().chain(others) {
        for longer in [0, 1, 1_000] {
            for (limiter, clock) in limiters() {
                let pause = secs(pause + longer);
                let left = after_pause(&limiter, &clock, &by(algorithm, 5), pause).await;
                assert_eq!(left, 2, "{algorithm:?} {pause:?}");
            }
        }
    }
}

#[tokio::test]
async fn to_the_last_moment_of_its_window_a_charge_is_given_back() {
    for algorithm in [Algorithm::SlidingLog, Algorithm::FixedWindow] {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 7);
            let left = after_pause(&limiter, &clock, &limit, secs(60) - MICRO).await;
            assert_eq!(left, 4, "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn a_counter_gives_back_what_still_weighs() {
    for (limiter, clock) in limiters() {
        let limit = by(Algorithm::SlidingCounter, 8);
        let first = take(&limiter, &limit, 8).await;
        clock.advance(secs(91));
        // Less than half of 8 weigh.
        take(&limiter, &limit, 3).await;
        assert_eq!(left(&limiter, &limit).await, 1);
        first.refund().await.unwrap();
        assert_eq!(left(&limiter, &limit).await, 5);
    }
}

#[tokio::test]
async fn of_a_bucket_comes_back_only_what_has_not_come_back_by_itself() {
    for (limiter, clock) in limiters() {
        let limit = tries(6);
        let first = take(&limiter, &limit, 6).await;
        clock.advance(secs(20));
        take(&limiter, &limit, 2).await;
        first.refund().await.unwrap();
        assert_eq!(left(&limiter, &limit).await, 4);
    }
}

#[tokio::test]
async fn of_a_bucket_comes_back_the_time_that_is_left_to_the_microsecond() {
    for (limiter, clock) in limiters() {
        let limit = tries(6);
        let first = take(&limiter, &limit, 1).await;
        clock.advance(secs(10) - MICRO);
        take(&limiter, &limit, 6 - 1).await;
        first.refund().await.unwrap();
        let look = limiter.look(&limit, "user").await.unwrap();
        assert_eq!(look.binding().unwrap().standing().reset(), secs(50));
    }
}

#[tokio::test]
async fn a_denied_request_has_nothing_to_give_back() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 5);
            take(&limiter, &limit, 4).await;
            clock.advance(MICRO);
            for cost in [2, 6, 1_000] {
                let denied = limiter.check(&limit.clone().cost(cost), "user").await.unwrap();
                assert!(!denied.is_allowed());
                denied.refund().await.unwrap();
                denied.refund_units("tries", u64::MAX).await.unwrap();
                assert_eq!(left(&limiter, &limit).await, 1, "{algorithm:?} {cost}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_one_of_its_limits_denied_gives_back_none_of_the_others() {
    for (limiter, _clock) in limiters() {
        let (wide, narrow) = (tries(9), Limit::new("narrow", Quota::per_minute(1)));
        take(&limiter, &wide, 5).await;
        take(&limiter, &narrow, 1).await;
        let pairs = [(&wide, "user"), (&narrow, "user")];
        let denied = limiter.check_all(pairs).await.unwrap();
        assert!(!denied.is_allowed());
        denied.refund().await.unwrap();
        assert_eq!(left(&limiter, &wide).await, 4);
    }
}

#[tokio::test]
async fn a_request_that_only_looked_has_nothing_to_give_back() {
    for (limiter, _clock) in limiters() {
        let limit = tries(5);
        take(&limiter, &limit, 4).await;
        for look in [
            limiter.look(&limit, "user").await.unwrap(),
            take(&limiter, &limit, 0).await,
            take(&limiter, &limit, 0).await.look().await.unwrap(),
        ] {
            look.refund().await.unwrap();
            look.refund_units("tries", u64::MAX).await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 1);
        }
    }
}

#[tokio::test]
async fn a_shadow_gets_back_what_it_was_charged_and_nothing_where_it_would_have_denied() {
    for (limiter, _clock) in limiters() {
        let (limit, shadow) = (tries(9), Limit::new("shadow", Quota::per_minute(3)).shadow());
        let both = async |cost: u64| {
            let shadow = shadow.clone().cost(cost);
            let pairs = [(&limit, "user"), (&shadow, "user")];
            limiter.check_all(pairs).await.unwrap()
        };
        let charged = both(2).await;
        let would_deny = both(2).await;
        would_deny.refund().await.unwrap();
        assert_eq!(left(&limiter, &shadow).await, 1);
        assert_eq!(left(&limiter, &limit).await, 8);
        charged.refund().await.unwrap();
        assert_eq!(left(&limiter, &shadow).await, 3);
        assert_eq!(left(&limiter, &limit).await, 9);
    }
}

#[tokio::test]
async fn after_a_clock_stepped_back_no_more_comes_back_than_was_taken() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 5);
            let start = tollgate::Clock::now(&clock);
            clock.advance(secs(3_600));
            let decision = take(&limiter, &limit, 4).await;
            clock.set(start);
            limiter.check(&limit, "user").await.unwrap();
            decision.refund().await.unwrap();
            // A bucket knows that the charge has not come back yet; others no more know when it was.
            let expected = if algorithm == Algorithm::TokenBucket { 4 } else { 0 };
            assert_eq!(left(&limiter, &limit).await, expected, "{algorithm:?}");
        }
    }
}
