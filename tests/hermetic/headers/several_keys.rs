//! A limit of several keys is told of as one, and its keys are never told.

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tollgate::{
    Header, KeyExtractor, Limit, Limiter, OnMissingKey, Policy, Quota, RateLimitLayer,
    ResponseBody, key, respond,
};
use tower::{Layer, Service, ServiceExt};

use crate::support::{Later, Probe, about, asking, field, limiters, memory, number, x_fields};

type Answer = Response<ResponseBody<String>>;

fn names(units: u64) -> Limit {
    Limit::new("names", Quota::per_minute(units))
}

fn policy() -> Policy {
    let policy = Policy::new("api").limit(about(), names(2));
    policy.limit(about(), Limit::new("hourly", Quota::per_hour(2))).build().unwrap()
}

/// The answers to requests about these, one after the other.
async fn answers<const N: usize>(layer: RateLimitLayer, requests: [Request<()>; N]) -> [Answer; N] {
    let mut service = layer.layer(Probe::new());
    let mut answers = Vec::new();
    for request in requests {
        answers.push(service.ready().await.unwrap().call(request).await.unwrap());
    }
    answers.try_into().ok().unwrap()
}

#[tokio::test]
async fn several_keys_that_deny_name_their_limit_once() {
    for (limiter, _clock) in limiters() {
        let layer = RateLimitLayer::with_policy(policy(), &limiter).respond(respond::Problem);
        let both = || asking(&["secret-a", "secret-b"]);
        let [_, _, denied] = answers(layer, [both(), both(), both()]).await;
        assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
        let headers = denied.headers().clone();
        let state = field(&headers, "ratelimit");
        assert_eq!(state, Some(r#""names";r=0;t=30, "hourly";r=0;t=1800"#));
        let policies = field(&headers, "ratelimit-policy");
        assert_eq!(policies, Some(r#""names";q=2;w=60, "hourly";q=2;w=3600"#));
        let body = denied.into_body().collect().await.unwrap().to_bytes();
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(document["violated-policies"], serde_json::json!(["names", "hourly"]));
        // And nobody learns of keys.
        assert!(!format!("{headers:?}{document}").contains("secret"));
    }
}

#[tokio::test]
async fn the_wait_of_a_limit_is_that_of_the_key_that_frees_last() {
    let (limiter, clock) = crate::support::limiter();
    let policy = Policy::new("api").limit(about(), names(1)).build().unwrap();
    let layer = || RateLimitLayer::with_policy(policy.clone(), &limiter);
    answers(layer(), [asking(&["a"])]).await;
    clock.advance(crate::support::secs(20));
    answers(layer(), [asking(&["b"])]).await;
    for keys in [["a", "b"], ["b", "a"]] {
        let [denied] = answers(layer(), [asking(&keys)]).await;
        assert_eq!(field(denied.headers(), "ratelimit"), Some(r#""names";r=0;t=60"#));
        assert_eq!(number(&denied, "retry-after"), Some(60));
    }
}

#[tokio::test]
async fn what_is_left_is_that_of_the_key_that_has_the_least() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("api").limit(about(), names(9)).build().unwrap();
        let layer = RateLimitLayer::with_policy(policy, &limiter);
        let [_, both] = answers(layer, [asking(&["b"]), asking(&["a", "b", "c"])]).await;
        assert_eq!(x_fields(&both)[..2], [Some(9), Some(7)]);
        assert_eq!(field(both.headers(), "ratelimit-policy"), Some(r#""names";q=9;w=60"#));
        assert!(field(both.headers(), "ratelimit").unwrap().starts_with(r#""names";r=7;"#));
    }
}

#[tokio::test]
async fn a_limit_that_a_request_skipped_is_not_told_whatever_the_number_of_other_keys() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("api")
            .limit(Header::from_static("x-tenant"), Limit::new("tenant", Quota::per_minute(1)))
            .limit(about(), names(9))
            .on_missing_key(OnMissingKey::Skip)
            .build()
            .unwrap();
        let told = |headers: &HeaderMap| field(headers, "ratelimit-policy").map(String::from);
        let layer = RateLimitLayer::with_policy(policy, &limiter);
        let mut tenant = asking(&["a"]);
        tenant.headers_mut().insert("x-tenant", "acme".parse().unwrap());
        let [one, two, three, all] =
            answers(layer, [asking(&["a"]), asking(&["a", "b"]), asking(&["a", "b", "c"]), tenant])
                .await;
        for skipping in [one, two, three] {
            assert_eq!(told(skipping.headers()).unwrap(), r#""names";q=9;w=60"#);
        }
        assert_eq!(told(all.headers()).unwrap(), r#""tenant";q=1;w=60, "names";q=9;w=60"#);
    }
}

/// How many of 9 requests about `about` pass two layers with one policy.
async fn admitted(limiter: &Limiter, about: &[&str]) -> usize {
    let layer = RateLimitLayer::with_policy(policy(), limiter);
    let probe = Probe::new();
    let mut service = layer.layer(layer.layer(probe.clone()));
    for _ in 0..9 {
        service.ready().await.unwrap().call(asking(about)).await.unwrap();
    }
    probe.calls()
}

#[tokio::test]
async fn a_layer_around_the_router_and_the_route_charges_each_key_once() {
    for (limiter, _clock) in limiters() {
        assert_eq!(admitted(&limiter, &["a", "b", "a"]).await, 2);
    }
}

#[tokio::test]
async fn a_layer_further_in_charges_the_keys_that_one_outside_did_not() {
    let limiter = Limiter::new(Later(memory().0));
    let limit = || names(4).scope("shared");
    // Outside, only the first name counts.
    let first = key::from_fn(|head| about().extract(head).ok()?.first().cloned());
    let outer = Policy::new("outer").limit(first, limit()).build().unwrap();
    let inner = Policy::new("inner").limit(about(), limit()).build().unwrap();
    let layer = RateLimitLayer::with_policy(inner, &limiter);
    let mut service = RateLimitLayer::with_policy(outer, &limiter).layer(layer.layer(Probe::new()));
    for _ in 0..2 {
        service.ready().await.unwrap().call(asking(&["a", "b"])).await.unwrap();
    }
    for key in ["a", "b"] {
        assert_eq!(crate::support::left(&limiter, &limit(), key).await, 2, "{key}");
    }
}
