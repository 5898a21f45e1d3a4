//! One limit may count several keys of a request: all of them are charged, or none is.

use tollgate::{
    Algorithm, Global, Header, Limit, OnMissingKey, Outcome, Policy, Quota, RequestHead,
};

use crate::support::{ALGORITHMS, about, asking, decide, left, limiters, secs};

fn names(units: u64) -> Limit {
    Limit::new("names", Quota::per_minute(units))
}

/// A policy that counts what requests are about.
fn api(limit: Limit) -> Policy {
    Policy::new("api").limit(about(), limit).build().unwrap()
}

#[tokio::test]
async fn each_key_pays_for_itself() {
    for (limiter, _clock) in limiters() {
        let policy = api(names(5).cost(2));
        decide(&limiter, &policy, &["a", "b"]).await;
        decide(&limiter, &policy, &["b", "c"]).await;
        let limit = policy.limit("names").unwrap();
        for (key, units) in [("a", 3), ("b", 1), ("c", 3), ("d", 5)] {
            assert_eq!(left(&limiter, limit, key).await, units, "{key}");
        }
    }
}

#[tokio::test]
async fn a_key_that_has_nothing_left_keeps_the_others_from_being_charged() {
    for algorithm in ALGORITHMS {
        for (limiter, _clock) in limiters() {
            let policy = api(names(2).algorithm(algorithm));
            let limit = policy.limit("names").unwrap();
            for _ in 0..2 {
                assert!(decide(&limiter, &policy, &["b"]).await.is_allowed());
            }
            // Wherever it stands.
            for keys in [["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]] {
                let decision = decide(&limiter, &policy, &keys).await;
                assert_eq!(decision.outcome(), Outcome::Denied, "{algorithm:?}");
                let denying = decision.verdicts().iter().filter(|verdict| verdict.denies());
                let denying: Vec<_> = denying.map(|verdict| keys[verdict.key_index()]).collect();
                assert_eq!(denying, ["b"], "{algorithm:?}");
            }
            for key in ["a", "c"] {
                assert_eq!(left(&limiter, limit, key).await, 2, "{algorithm:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_limit_that_denies_one_key_keeps_those_of_the_other_limits_from_being_charged() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("api")
            .limit(Global, Limit::new("all", Quota::per_minute(9)))
            .limit(about(), names(2))
            .limit(about(), Limit::new("hourly", Quota::per_hour(7)))
            .build()
            .unwrap();
        for _ in 0..2 {
            decide(&limiter, &policy, &["b"]).await;
        }
        assert!(!decide(&limiter, &policy, &["a", "b"]).await.is_allowed());
        let limit = |name| policy.limit(name).unwrap();
        let global = tollgate::Key::new("global", "all");
        assert_eq!(left(&limiter, limit("all"), global).await, 7);
        assert_eq!(left(&limiter, limit("names"), "a").await, 2);
        assert_eq!(left(&limiter, limit("hourly"), "a").await, 7);
        assert_eq!(left(&limiter, limit("hourly"), "b").await, 5);
    }
}

#[tokio::test]
async fn the_verdicts_tell_limits_and_keys_in_their_order() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("api")
            .limit(about(), names(9))
            .limit(Global, Limit::new("all", Quota::per_minute(99)))
            .limit(about(), Limit::new("hourly", Quota::per_hour(99)));
        let policy = policy.build().unwrap();
        let decision = decide(&limiter, &policy, &["a", "b"]).await;
        let seen = decision.verdicts().iter().map(|verdict| (verdict.name(), verdict.key_index()));
        let order = [("names", 0), ("names", 1), ("all", 0), ("hourly", 0), ("hourly", 1)];
        assert_eq!(seen.collect::<Vec<_>>(), order);
    }
}

#[tokio::test]
async fn the_verdict_that_binds_is_of_the_key_that_has_the_least() {
    for (limiter, _clock) in limiters() {
        let policy = api(names(9));
        decide(&limiter, &policy, &["b"]).await;
        let decision = decide(&limiter, &policy, &["a", "b", "c"]).await;
        let binding = decision.binding().unwrap();
        assert_eq!((binding.name(), binding.key_index()), ("names", 1));
        assert_eq!(decision.remaining(), Some(7));
    }
}

#[tokio::test]
async fn the_wait_is_that_of_the_key_that_frees_last_and_after_it_all_pass() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog] {
        for (limiter, clock) in limiters() {
            let policy = api(names(1).algorithm(algorithm));
            for key in ["a", "b", "c"] {
                decide(&limiter, &policy, &[key]).await;
                clock.advance(secs(10));
            }
            let all = ["b", "c", "a", "d"];
            let denied = decide(&limiter, &policy, &all).await;
            assert_eq!(denied.retry_after(), Some(secs(50)), "{algorithm:?}");
            assert_eq!(all[denied.binding().unwrap().key_index()], "c", "{algorithm:?}");
            clock.advance(secs(50) - std::time::Duration::from_micros(1));
            assert!(!decide(&limiter, &policy, &all).await.is_allowed(), "{algorithm:?}");
            clock.advance(std::time::Duration::from_micros(1));
            assert!(decide(&limiter, &policy, &all).await.is_allowed(), "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn the_wait_is_the_longest_over_limits_and_keys_and_names_both() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("api")
            .limit(about(), names(1))
            .limit(about(), Limit::new("hourly", Quota::per_hour(2)))
            .limit(Global, Limit::new("all", Quota::per_minute(99)));
        let policy = policy.build().unwrap();
        let request = decide(&limiter, &policy, &["c"]).await;
        assert!(request.is_allowed());
        let hourly = policy.limit("hourly").unwrap();
        limiter.check(&hourly.clone().cost(2), "b").await.unwrap();
        let denied = decide(&limiter, &policy, &["a", "b", "c"]).await;
        let binding = denied.binding().unwrap();
        assert_eq!((binding.name(), binding.key_index()), ("hourly", 1));
        assert_eq!(denied.retry_after(), Some(secs(1_800)));
    }
}

#[tokio::test]
async fn a_shadow_of_several_keys_charges_those_that_fit_and_denies_nothing() {
    for (limiter, _clock) in limiters() {
        let policy = api(names(2).shadow());
        for _ in 0..2 {
            decide(&limiter, &policy, &["b"]).await;
        }
        let decision = decide(&limiter, &policy, &["a", "b"]).await;
        assert!(decision.is_allowed());
        let fits: Vec<_> = decision.verdicts().iter().map(|key| key.standing().fits()).collect();
        assert_eq!(fits, [true, false]);
        assert_eq!(left(&limiter, policy.limit("names").unwrap(), "a").await, 1);
    }
}

#[tokio::test]
async fn a_limit_that_some_requests_skip_stands_next_to_one_of_several_keys() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("api")
            .limit(Header::from_static("x-tenant"), Limit::new("tenant", Quota::per_minute(1)))
            .limit(about(), names(3))
            .on_missing_key(OnMissingKey::Skip)
            .build()
            .unwrap();
        let skipping = decide(&limiter, &policy, &["a", "b"]).await;
        let seen = skipping.verdicts().iter().map(|verdict| (verdict.name(), verdict.key_index()));
        assert_eq!(seen.collect::<Vec<_>>(), [("names", 0), ("names", 1)]);

        let mut both = asking(&["b"]);
        both.headers_mut().insert("x-tenant", "acme".parse().unwrap());
        for admitted in [true, false] {
            let ruling = limiter.decide(&policy, RequestHead::new(&both)).await;
            assert_eq!(matches!(ruling, tollgate::Ruling::Admit(_)), admitted);
        }
        // What the tenant's limit denied has cost the name nothing.
        let limit = policy.limit("names").unwrap();
        assert_eq!(left(&limiter, limit, "a").await, 2);
        assert_eq!(left(&limiter, limit, "b").await, 1);
        assert_eq!(decide(&limiter, &policy, &[]).await.outcome(), Outcome::Skipped);
    }
}
