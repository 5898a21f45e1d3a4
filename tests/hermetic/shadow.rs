//! Limits that only watch: they affect nothing that is enforced.

use http::Request;
use tollgate::{Algorithm, Decision, Global, Limit, Limiter, Policy, Quota, RateLimitLayer};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::{limiter, secs};

fn enforced(units: u64) -> Limit {
    Limit::new("enforced", Quota::per_minute(units))
}

fn shadow(units: u64) -> Limit {
    Limit::new("shadow", Quota::per_minute(units)).shadow()
}

async fn check(limiter: &Limiter, limits: [&Limit; 2]) -> Decision {
    limiter.check_all(limits.map(|limit| (limit, "somebody"))).await.unwrap()
}

#[tokio::test]
async fn a_shadow_denies_nothing_and_says_what_it_would_have() {
    let (limiter, _clock) = limiter();
    let (enforced, shadow) = (enforced(3), shadow(1));
    for would_admit in [true, false, false] {
        let decision = check(&limiter, [&shadow, &enforced]).await;
        assert!(decision.is_allowed());
        assert_eq!(decision.binding().unwrap().name(), "enforced");
        let verdict = &decision.verdicts()[0];
        assert!(verdict.is_shadow() && !verdict.denies());
        assert_eq!(verdict.standing().fits(), would_admit);
    }
    let decision = check(&limiter, [&shadow, &enforced]).await;
    assert!(!decision.is_allowed());
    assert_eq!(decision.binding().unwrap().name(), "enforced");
}

#[tokio::test]
async fn a_shadow_is_charged_only_if_the_enforced_limits_admit() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog, Algorithm::FixedWindow] {
        let (limiter, _clock) = limiter();
        let (enforced, shadow) = (enforced(1), shadow(10).algorithm(algorithm));
        check(&limiter, [&enforced, &shadow]).await;
        for _ in 0..5 {
            assert!(!check(&limiter, [&enforced, &shadow]).await.is_allowed());
        }
        let left = limiter.look(&shadow, "somebody").await.unwrap().verdicts()[0].standing();
        assert_eq!(left.remaining(), 9, "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_shadow_that_would_deny_takes_nothing() {
    let (limiter, clock) = limiter();
    let (enforced, shadow) = (enforced(10), shadow(2).cost(2));
    for _ in 0..3 {
        assert!(check(&limiter, [&enforced, &shadow]).await.is_allowed());
    }
    let left = limiter.look(&enforced, "somebody").await.unwrap();
    assert_eq!(left.remaining(), Some(7));
    // Its first charge comes back as if the others had not been.
    clock.advance(secs(30));
    let left = limiter.look(&shadow, "somebody").await.unwrap().verdicts()[0].standing();
    assert_eq!(left.remaining(), 1);
}

#[tokio::test]
async fn clients_are_not_told_of_shadows() {
    let policy = Policy::new("api").limit(Global, shadow(1)).limit(Global, enforced(5));
    let layer = RateLimitLayer::with_policy(policy.build().unwrap(), &limiter().0);
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(()))
    }));
    for remaining in ["4", "3"] {
        let response = service.clone().oneshot(Request::new(())).await.unwrap();
        let headers = response.headers();
        assert_eq!(headers["x-ratelimit-remaining"], remaining);
        assert_eq!(headers["ratelimit-policy"], "\"enforced\";q=5;w=60");
        assert!(headers["ratelimit"].to_str().unwrap().starts_with("\"enforced\";"));
    }
}

#[tokio::test]
async fn a_policy_of_shadows_alone_admits_all_and_tells_nothing() {
    let policy = Policy::new("trial").limit(Global, shadow(1)).build().unwrap();
    let layer = RateLimitLayer::with_policy(policy, &limiter().0);
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(()))
    }));
    for _ in 0..3 {
        let response = service.clone().oneshot(Request::new(())).await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.headers().is_empty(), "{:?}", response.headers());
    }
}
