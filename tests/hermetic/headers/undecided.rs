//! What nobody knows is not told.

use http::StatusCode;
use tollgate::{
    ApiKey, Decision, Global, Limit, Limiter, OnFailure, OnMissingKey, Outcome, Policy, Quota,
    Source, StoreErrorKind,
};

use super::{draft::parse, formats::sent};
use crate::support::{Broken, Client, Flaky, field, memory, x_fields};

fn broken() -> Flaky {
    Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Unreachable))
}

fn on_failure(on_failure: OnFailure) -> Policy {
    let limit = Limit::new("tries", Quota::per_minute(12));
    Policy::new("api").limit(Global, limit).on_failure(on_failure).build().unwrap()
}

#[tokio::test]
async fn a_request_that_passed_because_the_store_failed_carries_no_fields() {
    let mut client = Client::sharing(&Limiter::new(broken()), on_failure(OnFailure::Allow));
    let response = client.send().await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.headers().is_empty(), "{:?}", response.headers());
    let decision: &Decision = response.extensions().get().unwrap();
    assert_eq!(decision.outcome(), Outcome::FailedOpen);
    assert_eq!(decision.remaining(), None);
}

#[tokio::test]
async fn a_request_that_was_denied_because_the_store_failed_carries_only_retry_after() {
    let mut client = Client::sharing(&Limiter::new(broken()), on_failure(OnFailure::Deny));
    let response = client.send().await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(sent(&response).is_empty(), "{:?}", response.headers());
    assert!(response.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn a_request_to_which_no_limit_applies_carries_no_fields() {
    let limit = Limit::new("tries", Quota::per_minute(1));
    let policy = Policy::new("api").limit(ApiKey::bearer(), limit);
    let policy = policy.on_missing_key(OnMissingKey::Skip).build().unwrap();
    let mut client = Client::sharing(&Limiter::new(memory().0), policy);
    for _ in 0..3 {
        let response = client.send().await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.headers().is_empty(), "{:?}", response.headers());
    }
}

#[tokio::test]
async fn what_this_instance_decides_alone_is_told_in_its_own_figures() {
    let (fallback, _) = memory();
    let limiter = Limiter::builder(broken()).fallback(fallback).build();
    let mut client = Client::sharing(&limiter, on_failure(OnFailure::Local { share: 0.25 }));
    let response = client.send().await;
    let [limit, remaining, _] = x_fields(&response);
    assert_eq!([limit, remaining], [Some(3), Some(2)]);
    let decision: &Decision = response.extensions().get().unwrap();
    assert_eq!(decision.source(), Source::Fallback);
    let (passed, denied) = client.exhaust().await;
    assert_eq!(passed, 2);
    for response in [response, denied] {
        let policy = parse(field(response.headers(), "ratelimit-policy").unwrap());
        assert_eq!(policy, [("tries".into(), vec![("q".into(), 3), ("w".into(), 60)])]);
    }
}

#[tokio::test]
async fn a_limit_that_was_skipped_is_not_in_the_policy_that_is_told() {
    let limit = |name: &'static str| Limit::new(name, Quota::per_minute(2));
    let policy = Policy::new("api")
        .limit(ApiKey::bearer(), limit("keyed"))
        .limit(Global, limit("all"))
        .on_missing_key(OnMissingKey::Skip);
    let mut client = Client::sharing(&Limiter::new(memory().0), policy.build().unwrap());
    let response = client.send().await;
    let told = field(response.headers(), "ratelimit-policy").unwrap();
    assert_eq!(told, r#""all";q=2;w=60"#);
}
