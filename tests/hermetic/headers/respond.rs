//! The answers themselves.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tollgate::{
    ApiKey, Decision, Global, HeaderFormat, KeyError, KeyExtractor, Keys, Limit, Limiter,
    OnFailure, Policy, Quota, RateLimitLayer, Rejection, RequestHead, ResponseBody, StoreErrorKind,
    respond,
};
use tower::Layer;

use crate::support::{Broken, Client, Flaky, Probe, field, memory, policy, send};

type Answer = Response<ResponseBody<String>>;

fn limits() -> [Limit; 3] {
    [
        Limit::new("minute", Quota::per_minute(1)),
        Limit::new("many", Quota::per_minute(9)),
        Limit::new("hour", Quota::per_hour(1)),
    ]
}

async fn denied(change: impl FnOnce(RateLimitLayer) -> RateLimitLayer) -> Answer {
    Client::with(policy("api", limits()), change).exhaust().await.1
}

async fn closed(change: impl FnOnce(RateLimitLayer) -> RateLimitLayer) -> Answer {
    let [limit, ..] = limits();
    let policy =
        Policy::new("api").limit(Global, limit).on_failure(OnFailure::Deny).build().unwrap();
    let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Timeout));
    let layer = change(RateLimitLayer::with_policy(policy, &Limiter::new(store)));
    send(&mut layer.layer(Probe::new())).await
}

async fn keyless(
    key: impl KeyExtractor,
    change: impl FnOnce(RateLimitLayer) -> RateLimitLayer,
) -> Answer {
    let layer = change(RateLimitLayer::new(key, Quota::per_minute(1), memory().0));
    send(&mut layer.layer(Probe::new())).await
}

async fn body(response: Answer) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn no_cache_may_keep_any_of_them() {
    for response in
        [denied(|l| l).await, closed(|l| l).await, keyless(ApiKey::bearer(), |l| l).await]
    {
        assert_eq!(field(response.headers(), "cache-control"), Some("no-store"));
        assert_ne!(response.status(), StatusCode::OK);
    }
    let mut client = Client::of(policy("api", limits()));
    assert!(!client.send().await.headers().contains_key("cache-control"));
}

#[tokio::test]
async fn without_a_word_they_are_a_short_text() {
    let response = denied(|layer| layer).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(response.headers(), "content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(body(response).await, "too many requests");
    let response = keyless(ApiKey::bearer(), |layer| layer).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

async fn problem(response: Answer) -> Value {
    assert_eq!(field(response.headers(), "content-type"), Some("application/problem+json"));
    let status = response.status().as_u16();
    let document: Value = serde_json::from_slice(&body(response).await).unwrap();
    assert_eq!(document["status"], status);
    assert!(document["title"].as_str().is_some_and(|title| !title.is_empty()));
    document
}

#[tokio::test]
async fn a_problem_document_names_the_limits_that_were_violated() {
    let document = problem(denied(|layer| layer.respond(respond::Problem)).await).await;
    assert_eq!(
        document,
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "status": 429,
            "title": "too many requests",
            "violated-policies": ["minute", "hour"],
        })
    );
}

#[tokio::test]
async fn a_problem_document_says_when_coming_back_is_no_use() {
    let never = policy("api", [Limit::new("never", Quota::per_minute(1)).cost_by(|_| 2)]);
    let mut client = Client::with(never, |layer| layer.respond(respond::Problem));
    let document = problem(client.send().await).await;
    assert_eq!(document["title"], "the request costs more than its limit can ever grant");
}

#[tokio::test]
async fn a_problem_document_tells_a_store_that_fails_from_a_limit() {
    let document = problem(closed(|layer| layer.respond(respond::Problem)).await).await;
    assert_eq!(
        document["type"],
        "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
    );
    assert_eq!(document["status"], 503);
    assert_eq!(document["violated-policies"], json!([]));
}

#[tokio::test]
async fn a_problem_document_is_json_whatever_an_extractor_says() {
    struct Odd;
    impl KeyExtractor for Odd {
        fn extract(&self, _: RequestHead<'_>) -> Result<Keys, KeyError> {
            Err(KeyError::missing("a \"quoted\" \\ back\nslash, \u{7f}\u{1} and \u{e9}")
                .with_status(StatusCode::FORBIDDEN))
        }
    }
    let document = problem(keyless(Odd, |layer| layer.respond(respond::Problem)).await).await;
    assert_eq!(document["type"], "about:blank");
    assert_eq!(document["status"], 403);
    assert_eq!(document["title"], "a \"quoted\" \\ back slash,    and \u{e9}");
}

#[tokio::test]
async fn an_answer_of_ones_own_gets_the_fields_and_keeps_the_reason_in_its_extensions() {
    let own = respond::from_fn(|rejection, head| {
        let mut response = Response::new(format!("{} is busy", head.uri().path()));
        *response.status_mut() = match rejection {
            Rejection::Limited(_) => StatusCode::PAYLOAD_TOO_LARGE,
            other => respond::status(other),
        };
        response
    });
    let response = denied(|layer| layer.respond(own)).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(field(response.headers(), "retry-after"), Some("3600"));
    assert_eq!(field(response.headers(), "x-ratelimit-limit"), Some("1"));
    assert!(matches!(response.extensions().get(), Some(Rejection::Limited(_))));
    assert!(response.extensions().get::<Decision>().is_some());
    assert_eq!(body(response).await, "/ is busy");

    let response = closed(|layer| layer.respond(own)).await;
    let Some(Rejection::StoreFailed(kind)) = response.extensions().get() else {
        panic!("no reason")
    };
    assert_eq!(*kind, StoreErrorKind::Timeout);
    let response = keyless(ApiKey::bearer(), |layer| layer.respond(own)).await;
    assert!(matches!(response.extensions().get(), Some(Rejection::NoKey(_))));
}

#[tokio::test]
async fn what_an_answer_of_ones_own_sets_itself_stays() {
    let own = respond::from_fn(|_, _| {
        let lines =
            Response::builder().header("retry-after", "99").header("cache-control", "private");
        lines.status(429).body("own").unwrap()
    });
    let response = denied(|layer| layer.respond(own).headers(HeaderFormat::None)).await;
    assert_eq!(field(response.headers(), "retry-after"), Some("99"));
    assert_eq!(field(response.headers(), "cache-control"), Some("private"));
}
