//! Parts of a charge, limits of a request and keys of a limit.

use tollgate::{Limit, Policy, Quota};

use super::{by, left, take, tries};
use crate::support::{ALGORITHMS, about, decide, limiters, secs};

#[tokio::test]
async fn parts_sum_to_at_most_the_charge() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 12);
            take(&limiter, &limit, 6).await;
            clock.advance(std::time::Duration::from_micros(1));
            let decision = take(&limiter, &limit, 5).await;
            for (units, remaining) in [(0, 1), (2, 3), (2, 5), (99, 6), (1, 6), (u64::MAX, 6)] {
                decision.refund_units("tries", units).await.unwrap();
                assert_eq!(left(&limiter, &limit).await, remaining, "{algorithm:?} {units}");
            }
            decision.refund().await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 6, "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn after_a_part_the_whole_is_the_rest() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 12);
            take(&limiter, &limit, 6).await;
            clock.advance(std::time::Duration::from_micros(1));
            let decision = take(&limiter, &limit, 5).await;
            decision.refund_units("tries", 3).await.unwrap();
            decision.refund().await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 6, "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn parts_of_a_charge_that_has_come_back_in_part_give_no_more_than_the_whole() {
    for (limiter, clock) in limiters() {
        let limit = tries(6);
        let first = take(&limiter, &limit, 6).await;
        clock.advance(secs(30));
        // Three have come back, and are taken by others.
        take(&limiter, &limit, 3).await;
        for (units, remaining) in [(2, 2), (2, 3), (2, 3)] {
            first.refund_units("tries", units).await.unwrap();
            assert_eq!(left(&limiter, &limit).await, remaining);
        }
    }
}

#[tokio::test]
async fn what_is_left_of_a_charge_after_a_part_was_given_back_comes_back_as_early() {
    for (limiter, clock) in limiters() {
        let limit = tries(6);
        let first = take(&limiter, &limit, 6).await;
        first.refund_units("tries", 3).await.unwrap();
        clock.advance(secs(30));
        // The other three have come back by now.
        assert_eq!(left(&limiter, &limit).await, 6);
        take(&limiter, &limit, 5).await;
        first.refund().await.unwrap();
        assert_eq!(left(&limiter, &limit).await, 1);
    }
}

#[tokio::test]
async fn the_largest_number_of_units_is_the_whole_charge() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 9);
            take(&limiter, &limit, 2).await;
            clock.advance(std::time::Duration::from_micros(1));
            take(&limiter, &limit, 5).await.refund_units("tries", u64::MAX).await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 7, "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn units_are_given_back_to_the_limit_of_that_name_only_and_a_whole_charge_to_all() {
    for (limiter, _clock) in limiters() {
        let (limit, hourly) = (tries(9), Limit::new("hourly", Quota::per_hour(9)).cost(4));
        let pairs = [(&limit, "user"), (&hourly, "user")];
        let decision = limiter.check_all(pairs).await.unwrap();
        decision.refund_units("other", 1).await.unwrap();
        decision.refund_units("", u64::MAX).await.unwrap();
        decision.refund_units("hourly", 1).await.unwrap();
        assert_eq!((left(&limiter, &limit).await, left(&limiter, &hourly).await), (8, 6));
        decision.refund().await.unwrap();
        assert_eq!((left(&limiter, &limit).await, left(&limiter, &hourly).await), (9, 9));
    }
}

#[tokio::test]
async fn each_key_of_a_limit_gets_back_its_own() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("api").limit(about(), tries(9).cost(4)).build().unwrap();
        decide(&limiter, &policy, &["b"]).await;
        let decision = decide(&limiter, &policy, &["a", "b", "a"]).await;
        let limit = policy.limit("tries").unwrap();
        let both = async || {
            let left = crate::support::left;
            [left(&limiter, limit, "a").await, left(&limiter, limit, "b").await]
        };
        assert_eq!(both().await, [5, 1]);
        decision.refund_units("tries", 1).await.unwrap();
        assert_eq!(both().await, [6, 2]);
        decision.refund().await.unwrap();
        decision.refund().await.unwrap();
        assert_eq!(both().await, [9, 5]);
    }
}
