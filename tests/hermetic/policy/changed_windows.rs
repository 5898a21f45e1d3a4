//! What a changed quantity means for windows: what was counted carries over, and a change holds at
//! once.

use tollgate::{Algorithm, Calendar, Decision, Limit, Limiter, Quota};

use crate::support::{limiter, secs};

const ALL: [Algorithm; 6] = [
    Algorithm::SlidingLog,
    Algorithm::SlidingCounter,
    Algorithm::FixedWindow,
    Algorithm::Calendar(Calendar::Day),
    Algorithm::Calendar(Calendar::Week),
    Algorithm::Calendar(Calendar::Month),
];

fn limit(algorithm: Algorithm, units: u64) -> Limit {
    match algorithm {
        Algorithm::Calendar(unit) => Limit::calendar("requests", units, unit),
        _ => Limit::new("requests", Quota::per_minute(units)).algorithm(algorithm),
    }
}

async fn take(limiter: &Limiter, algorithm: Algorithm, units: u64, cost: u64) -> Decision {
    limiter.check(&limit(algorithm, units).cost(cost), "user").await.unwrap()
}

#[tokio::test]
async fn a_lowered_limit_leaves_none_of_the_old_units_usable() {
    for algorithm in ALL {
        for (taken, left) in [(0, 10), (1, 9), (9, 1), (10, 0), (11, 0), (500, 0), (1_000, 0)] {
            let (limiter, _) = limiter();
            take(&limiter, algorithm, 1_000, taken).await;
            let look = take(&limiter, algorithm, 10, 0).await;
            assert_eq!(look.remaining(), Some(left), "{algorithm:?} after {taken}");
            let mut passed = 0;
            while take(&limiter, algorithm, 10, 1).await.is_allowed() {
                passed += 1;
            }
            assert_eq!(passed, left, "{algorithm:?} after {taken}");
        }
    }
}

#[tokio::test]
async fn who_waits_as_a_lowered_limit_says_is_admitted() {
    for algorithm in ALL {
        let (limiter, clock) = limiter();
        assert!(take(&limiter, algorithm, 1_000, 1_000).await.is_allowed());
        let denied = take(&limiter, algorithm, 10, 3).await;
        let wait = denied.retry_after().expect("it passes some day");
        clock.advance(wait);
        assert!(take(&limiter, algorithm, 10, 3).await.is_allowed(), "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_raised_limit_holds_at_once_for_who_is_at_the_old_one() {
    for algorithm in ALL {
        let (limiter, _) = limiter();
        assert!(take(&limiter, algorithm, 10, 10).await.is_allowed());
        assert!(!take(&limiter, algorithm, 10, 1).await.is_allowed());
        let look = take(&limiter, algorithm, 25, 0).await;
        assert_eq!(look.remaining(), Some(15), "{algorithm:?}");
        assert!(take(&limiter, algorithm, 25, 15).await.is_allowed(), "{algorithm:?}");
        assert!(!take(&limiter, algorithm, 25, 1).await.is_allowed(), "{algorithm:?}");
    }
}

#[tokio::test]
async fn another_window_or_algorithm_begins_anew_and_going_back_forgives_nothing() {
    let (limiter, _) = limiter();
    let limits = || {
        let hourly = |algorithm| Limit::new("requests", Quota::per_hour(10)).algorithm(algorithm);
        let all = ALL.map(|algorithm| limit(algorithm, 10));
        all.into_iter().chain([limit(Algorithm::TokenBucket, 10)]).chain([
            hourly(Algorithm::SlidingLog),
            hourly(Algorithm::SlidingCounter),
            hourly(Algorithm::FixedWindow),
        ])
    };
    for limit in limits() {
        let all = limiter.check(&limit.clone().cost(10), "user").await.unwrap();
        assert!(all.is_allowed(), "{limit:?}");
    }
    for limit in limits() {
        assert!(!limiter.check(&limit, "user").await.unwrap().is_allowed(), "{limit:?}");
    }
}

#[tokio::test]
async fn an_unchanged_window_keeps_its_state_beside_one_that_changed() {
    let (limiter, clock) = limiter();
    for (left, other) in [(4, 100), (3, 200), (2, 50)] {
        let same = Limit::new("same", Quota::per_hour(5)).algorithm(Algorithm::SlidingLog);
        let other = Limit::new("other", Quota::per_hour(other)).algorithm(Algorithm::FixedWindow);
        let pairs = [(&same, "user"), (&other, "user")];
        let decision = limiter.check_all(pairs).await.unwrap();
        assert_eq!(decision.verdicts()[0].standing().remaining(), left);
        clock.advance(secs(1));
    }
}
