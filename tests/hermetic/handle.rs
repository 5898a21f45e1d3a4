//! A decision is a handle: for more of the same, and to see how things stand by now.

use http::{Request, Response};
use tollgate::{
    Algorithm, Decision, Global, Key, Limit, Limiter, OnFailure, OnMissingKey, Outcome, Policy,
    Quota, RateLimitLayer, Source, StoreErrorKind,
};
use tower::{Layer, service_fn};

use crate::support::{
    ALGORITHMS, Broken, Flaky, about, decide, left, limiters, memory, policy, secs, send, x_fields,
};

fn tokens(units: u64) -> Limit {
    Limit::new("tokens", Quota::per_minute(units))
}

fn hourly() -> Limit {
    Limit::new("hourly", Quota::per_hour(9))
}

fn all() -> Key {
    Key::new("global", "all")
}

#[tokio::test]
async fn it_charges_more_of_the_limit_of_that_name_and_of_no_other() {
    for algorithm in ALGORITHMS {
        for (limiter, _clock) in limiters() {
            let policy = policy("chat", [tokens(9).algorithm(algorithm), hourly()]);
            let decision = decide(&limiter, &policy, &[]).await;
            let more = decision.charge("tokens", 5).await.unwrap();
            assert_eq!(more.outcome(), Outcome::Allowed, "{algorithm:?}");
            assert_eq!(more.policy(), "chat");
            let [verdict] = more.verdicts() else { panic!("one limit: {more:?}") };
            assert_eq!((verdict.name(), verdict.cost()), ("tokens", 5));
            assert_eq!((more.source(), more.remaining()), (Source::Memory, Some(3)));
            assert_eq!(left(&limiter, policy.limit("tokens").unwrap(), all()).await, 3);
            assert_eq!(left(&limiter, policy.limit("hourly").unwrap(), all()).await, 8);
        }
    }
}

#[tokio::test]
async fn it_charges_all_keys_that_the_request_has_there_or_none() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("chat").limit(about(), tokens(9)).limit(Global, hourly());
        let policy = policy.build().unwrap();
        let tokens = policy.limit("tokens").unwrap();
        decide(&limiter, &policy, &["b"]).await;
        let decision = decide(&limiter, &policy, &["a", "b"]).await;
        let more = decision.charge("tokens", 7).await.unwrap();
        assert!(more.is_allowed());
        assert_eq!(more.verdicts().iter().map(|key| key.key_index()).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(left(&limiter, tokens, "a").await, 1);
        assert_eq!(left(&limiter, tokens, "b").await, 0);
        let denied = decision.charge("tokens", 1).await.unwrap();
        assert_eq!(denied.outcome(), Outcome::Denied);
        assert_eq!(denied.binding().unwrap().key_index(), 1);
        assert_eq!(left(&limiter, tokens, "a").await, 1);
    }
}

#[tokio::test]
async fn a_charge_that_is_denied_takes_nothing_and_tells_the_wait_for_all_its_units() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog] {
        for (limiter, clock) in limiters() {
            let policy = policy("chat", [tokens(6).algorithm(algorithm)]);
            let decision = decide(&limiter, &policy, &[]).await;
            decision.charge("tokens", 2).await.unwrap();
            let denied = decision.charge("tokens", 4).await.unwrap();
            assert_eq!(denied.outcome(), Outcome::Denied);
            assert_eq!(left(&limiter, policy.limit("tokens").unwrap(), all()).await, 3);
            clock.advance(denied.retry_after().unwrap() - std::time::Duration::from_micros(1));
            assert!(!decision.charge("tokens", 4).await.unwrap().is_allowed(), "{algorithm:?}");
            clock.advance(std::time::Duration::from_micros(1));
            assert!(decision.charge("tokens", 4).await.unwrap().is_allowed(), "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn a_charge_of_more_than_there_can_ever_be_is_denied_for_good() {
    for algorithm in ALGORITHMS {
        for (limiter, _clock) in limiters() {
            let policy = policy("chat", [tokens(9).algorithm(algorithm)]);
            let decision = decide(&limiter, &policy, &[]).await;
            for units in [10, 5_000, u64::MAX - 1, u64::MAX] {
                let denied = decision.charge("tokens", units).await.unwrap();
                assert_eq!(denied.outcome(), Outcome::Denied, "{algorithm:?} {units}");
                assert_eq!(denied.retry_after(), None, "{algorithm:?} {units}");
            }
            assert_eq!(left(&limiter, policy.limit("tokens").unwrap(), all()).await, 8);
        }
    }
}

#[tokio::test]
async fn a_charge_of_nothing_is_a_look() {
    for (limiter, _clock) in limiters() {
        let policy = policy("chat", [tokens(1)]);
        let decision = decide(&limiter, &policy, &[]).await;
        let look = decision.charge("tokens", 0).await.unwrap();
        assert_eq!((look.outcome(), look.remaining()), (Outcome::Allowed, Some(0)));
    }
}

#[tokio::test]
async fn a_limit_that_did_not_apply_to_the_request_is_skipped() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("chat")
            .limit(Global, tokens(9))
            .limit(about(), hourly())
            .on_missing_key(OnMissingKey::Skip);
        let policy = policy.build().unwrap();
        let decision = decide(&limiter, &policy, &[]).await;
        for name in ["hourly", "other", "", "token"] {
            let more = decision.charge(name, 1).await.unwrap();
            assert_eq!(more.outcome(), Outcome::Skipped, "{name}");
            assert_eq!((more.policy(), more.verdicts().len()), ("chat", 0));
            more.refund().await.unwrap();
        }
        assert_eq!(left(&limiter, policy.limit("tokens").unwrap(), all()).await, 8);
    }
}

#[tokio::test]
async fn a_request_that_no_limit_applied_to_has_none_to_charge_or_to_look_at() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("chat").limit(about(), hourly());
        let policy = policy.on_missing_key(OnMissingKey::Skip).build().unwrap();
        let skipped = decide(&limiter, &policy, &[]).await;
        assert_eq!(skipped.charge("hourly", 1).await.unwrap().outcome(), Outcome::Skipped);
        assert_eq!(skipped.look().await.unwrap().outcome(), Outcome::Skipped);
    }
}

#[tokio::test]
async fn a_request_that_failed_open_stays_so_also_once_the_store_answers() {
    let store = Flaky::broken(memory().0, Broken::Later(StoreErrorKind::Timeout));
    let limiter = Limiter::new(store.clone());
    let policy = policy("chat", [tokens(9)]);
    let decision = decide(&limiter, &policy, &[]).await;
    store.mend();
    for again in [decision.charge("tokens", 1).await, decision.look().await] {
        assert_eq!(again.unwrap().outcome(), Outcome::FailedOpen);
    }
    assert_eq!(left(&limiter, policy.limit("tokens").unwrap(), all()).await, 9);
}

#[tokio::test]
async fn a_store_that_fails_meanwhile_is_an_error_whatever_the_policy_says() {
    for on_failure in [OnFailure::Allow, OnFailure::Deny, OnFailure::Local { share: 0.5 }] {
        let store = Flaky::new(memory().0);
        let limiter = Limiter::new(store.clone());
        let policy = Policy::new("chat").limit(Global, tokens(9)).on_failure(on_failure);
        let decision = decide(&limiter, &policy.build().unwrap(), &[]).await;
        for (broken, kind) in [
            (Broken::Now(StoreErrorKind::Timeout), StoreErrorKind::Timeout),
            (Broken::Later(StoreErrorKind::Busy), StoreErrorKind::Busy),
            (Broken::Miscounts(3), StoreErrorKind::Unexpected),
        ] {
            store.break_(broken);
            assert_eq!(decision.charge("tokens", 1).await.unwrap_err().kind(), kind);
            assert_eq!(decision.look().await.unwrap_err().kind(), kind);
        }
    }
}

#[tokio::test]
async fn what_the_fallback_decided_it_goes_on_with() {
    let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Timeout));
    let limiter = Limiter::new(store.clone());
    let policy = Policy::new("chat").limit(Global, tokens(10));
    let policy = policy.on_failure(OnFailure::Local { share: 0.5 }).build().unwrap();
    let decision = decide(&limiter, &policy, &[]).await;
    store.mend();
    let more = decision.charge("tokens", 3).await.unwrap();
    assert_eq!((more.source(), more.remaining()), (Source::Fallback, Some(1)));
    assert_eq!(more.binding().unwrap().quota().capacity(), 5);
    assert_eq!(store.asked(), 1);
}

#[tokio::test]
async fn looking_takes_nothing_and_shows_what_others_took_since() {
    for algorithm in ALGORITHMS {
        for (limiter, _clock) in limiters() {
            let policy = policy("chat", [tokens(9).algorithm(algorithm), hourly()]);
            let decision = decide(&limiter, &policy, &[]).await;
            decide(&limiter, &policy, &[]).await;
            for _ in 0..3 {
                let look = decision.look().await.unwrap();
                let seen = look.verdicts().iter();
                let seen = seen.map(|verdict| (verdict.name(), verdict.standing().remaining()));
                assert_eq!(seen.collect::<Vec<_>>(), [("tokens", 7), ("hourly", 7)]);
            }
            // The decision itself stays what it was.
            assert_eq!(decision.remaining(), Some(8), "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn looking_at_a_denied_request_tells_how_long_it_has_to_wait_by_now() {
    for (limiter, clock) in limiters() {
        let policy = policy("chat", [tokens(6).cost(6)]);
        decide(&limiter, &policy, &[]).await;
        let denied = decide(&limiter, &policy, &[]).await;
        clock.advance(secs(4));
        let look = denied.look().await.unwrap();
        assert!(look.is_allowed());
        assert_eq!(look.now().as_micros() - denied.now().as_micros(), 4_000_000);
        assert_eq!(look.binding().unwrap().standing().wait(), Some(secs(6)));
    }
}

#[tokio::test]
async fn a_shadow_is_charged_more_where_it_would_admit_and_never_denies() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("chat").limit(about(), tokens(3).shadow()).build().unwrap();
        decide(&limiter, &policy, &["b"]).await;
        let decision = decide(&limiter, &policy, &["a", "b"]).await;
        let more = decision.charge("tokens", 2).await.unwrap();
        assert_eq!(more.outcome(), Outcome::Allowed);
        let fits = more.verdicts().iter().map(|key| (key.is_shadow(), key.standing().fits()));
        assert_eq!(fits.collect::<Vec<_>>(), [(true, true), (true, false)]);
        let tokens = policy.limit("tokens").unwrap();
        assert_eq!(left(&limiter, tokens, "a").await, 0);
        assert_eq!(left(&limiter, tokens, "b").await, 1);
    }
}

#[tokio::test]
async fn it_tells_whom_each_verdict_is_about() {
    for (limiter, _clock) in limiters() {
        let policy =
            Policy::new("chat").limit(Global, hourly()).limit(about(), tokens(1)).build().unwrap();
        for outcome in [Outcome::Allowed, Outcome::Denied, Outcome::Denied] {
            let decision = decide(&limiter, &policy, &["a{,", "b"]).await;
            assert_eq!(decision.outcome(), outcome);
            let keys = [0, 1, 2, 3].map(|place| decision.key(place));
            let expected = [Some("global:all"), Some("id:a%7b%2c"), Some("id:b"), None];
            assert_eq!(keys, expected);
            assert_eq!(keys[1], Some(Key::from("a{,").as_str()));
            let look = decision.look().await.unwrap();
            assert_eq!(look.key(2), Some("id:b"));
        }
    }
}

#[tokio::test]
async fn a_handler_charges_more_and_its_client_sees_it() {
    for (limiter, _clock) in limiters() {
        let policy = policy("chat", [tokens(9)]);
        let handler = service_fn(async |request: Request<()>| {
            let decision: &Decision = request.extensions().get().unwrap();
            let mut response = Response::new(());
            response.extensions_mut().insert(decision.charge("tokens", 3).await.unwrap());
            Ok::<_, std::convert::Infallible>(response)
        });
        let layer = RateLimitLayer::with_policy(policy, &limiter);
        let mut service = layer.layer(layer.layer(handler));
        assert_eq!(x_fields(&send(&mut service).await)[1], Some(5));
        assert_eq!(x_fields(&send(&mut service).await)[1], Some(1));
    }
}
