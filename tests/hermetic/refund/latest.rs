//! Units that are given back to a key, of no decision in particular.

use tollgate::{Calendar, Key, Limit, Limiter, PeerIp, Policy, Quota, StoreErrorKind};

use super::{by, left, take, tries};
use crate::support::{ALGORITHMS, Broken, Flaky, Remote, limiters, memory};

#[tokio::test]
async fn so_many_units_are_back_and_the_next_request_passes() {
    let plan = Limit::calendar("plan", 10, Calendar::Week);
    for limit in ALGORITHMS.map(|algorithm| by(algorithm, 10)).into_iter().chain([plan]) {
        for (limiter, _clock) in limiters() {
            take(&limiter, &limit, 6).await;
            take(&limiter, &limit, 4).await;
            let denied = limiter.check(&limit, "user").await.unwrap();
            assert!(!denied.is_allowed());
            limiter.give_back(&limit, "user", 0).await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 0);
            limiter.give_back(&limit, "user", 5).await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 5, "{:?}", limit.counts_by());
            take(&limiter, &limit, 5).await;
            assert!(!limiter.check(&limit, "user").await.unwrap().is_allowed());
            limiter.give_back(&limit, "user", u64::MAX).await.unwrap();
            assert_eq!(left(&limiter, &limit).await, 10, "{:?}", limit.counts_by());
        }
    }
}

#[tokio::test]
async fn others_keep_what_they_have_taken() {
    for (limiter, _clock) in limiters() {
        let limits = [tries(10), tries(10).scope("s"), Limit::new("other", Quota::per_minute(10))];
        for limit in &limits {
            for key in ["user", "another"] {
                limiter.check(&limit.clone().cost(5), key).await.unwrap();
            }
        }
        limiter.give_back(&limits[0], "user", 3).await.unwrap();
        for (at, limit) in limits.iter().enumerate() {
            for key in ["user", "another"] {
                let expected = if (at, key) == (0, "user") { 8 } else { 5 };
                assert_eq!(
                    crate::support::left(&limiter, limit, key).await,
                    expected,
                    "{at} {key}"
                );
            }
        }
    }
}

/// The key of a limit that counts by several things at once, by the quota that applies to it.
#[tokio::test]
async fn a_limit_of_a_policy_gives_back_to_the_key_of_several_parts() {
    let (limiter, _clock) = crate::support::limiter();
    let key = || PeerIp::key("192.0.2.7".parse().unwrap()).and(Key::new("id", "a,b")).and("c");
    assert_eq!(key().as_str(), "ip:192.0.2.7,id:a%2cb,id:c");
    let whom = tollgate::key::from_fn(|_| Some("a,b".to_owned()));
    let third = tollgate::key::from_fn(|_| Some("c"));
    let limit = tries(5).override_key(key(), Quota::per_minute(8));
    let policy = Policy::new("api").limit((PeerIp, whom, third), limit).build().unwrap();
    let mut request = http::Request::new(());
    request.extensions_mut().insert(std::net::SocketAddr::from(([192, 0, 2, 7], 1)));
    for _ in 0..8 {
        let ruling = limiter.decide(&policy, tollgate::RequestHead::new(&request)).await;
        assert!(matches!(ruling, tollgate::Ruling::Admit(_)), "{ruling:?}");
    }
    let limit = limiter.limit_for(&policy, "tries", None, &key()).unwrap();
    limiter.give_back(&limit, key(), 3).await.unwrap();
    assert_eq!(limiter.look(&limit, key()).await.unwrap().remaining(), Some(3));
}

/// A denial that is remembered is forgotten.
#[tokio::test]
async fn who_was_denied_from_memory_is_asked_about_again() {
    let (fallback, clock) = memory();
    let store = Remote::new(clock);
    let limiter = Limiter::builder(store.clone()).fallback(fallback).build();
    take(&limiter, &tries(5), 5).await;
    for _ in 0..2 {
        assert!(!limiter.check(&tries(5), "user").await.unwrap().is_allowed());
    }
    assert_eq!(store.asked(), 2, "the second denial is remembered");
    limiter.give_back(&tries(5), "user", 1).await.unwrap();
    take(&limiter, &tries(5), 1).await;
}

#[tokio::test]
async fn a_store_that_fails_says_so_and_is_noted() {
    let store = Flaky::broken(memory().0, Broken::Later(StoreErrorKind::Timeout));
    let limiter = Limiter::new(store.clone());
    let error = limiter.give_back(&tries(5), "user", 1).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Timeout);
    assert_eq!(limiter.health().failures(StoreErrorKind::Timeout), 1);
}
