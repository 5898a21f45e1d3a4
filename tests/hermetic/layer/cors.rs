//! `CorsLayer` and `TimeoutLayer` outside the limiter, in one `ServiceBuilder`: both need a body that
//! has a default, and a browser reads no answer without CORS headers.

use std::{convert::Infallible, time::Duration};

use axum::{Router, body::Body, routing::get};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tollgate::{Global, HeaderFormat, Quota, RateLimitLayer};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_http::{
    cors::{Any, CorsLayer},
    timeout::TimeoutLayer,
};

use crate::support::{Gated, memory, secs};

fn one() -> RateLimitLayer {
    RateLimitLayer::new(Global, Quota::per_minute(1), memory().0)
}

fn cors() -> CorsLayer {
    let told = one().exposed_headers();
    CorsLayer::new().allow_origin(Any).allow_methods(Any).expose_headers(told)
}

fn timeout(after: Duration) -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, after)
}

fn from_a_browser<B>(method: &str, body: B) -> Request<B> {
    let request = Request::builder().method(method).uri("/").header("origin", "https://a.example");
    request.header("access-control-request-method", "GET").body(body).unwrap()
}

fn browser_reads<B>(response: &Response<B>) -> bool {
    response.headers().get("access-control-allow-origin").is_some_and(|origin| origin == "*")
}

#[tokio::test]
async fn a_browser_can_read_a_denial_and_preflights_are_not_counted() {
    let stack = ServiceBuilder::new().layer(cors()).layer(timeout(secs(9))).layer(one());
    let app = Router::new().route("/", get(async || "hello")).layer(stack);
    for _ in 0..9 {
        let request = from_a_browser("OPTIONS", Body::empty());
        let preflight = app.clone().oneshot(request).await.unwrap();
        assert_eq!(preflight.status(), StatusCode::OK);
        assert!(browser_reads(&preflight));
        assert!(!preflight.headers().contains_key("ratelimit"));
    }
    for status in [200, 429] {
        let response = app.clone().oneshot(from_a_browser("GET", Body::empty())).await.unwrap();
        assert_eq!(response.status(), status);
        assert!(browser_reads(&response), "{status}: {:?}", response.headers());
        let told = response.headers()["access-control-expose-headers"].to_str().unwrap();
        let told: Vec<&str> = told.split(',').collect();
        for name in response.headers().keys().map(|name| name.as_str()) {
            let limits = name.contains("ratelimit") || name == "retry-after";
            assert!(!limits || told.contains(&name), "{name} is not in {told:?}");
        }
    }
}

#[tokio::test]
async fn the_same_stack_stands_around_a_plain_tower_service() {
    let inner = service_fn(async |_: Request<Full<bytes::Bytes>>| {
        Ok::<_, Infallible>(Response::new(Full::new(bytes::Bytes::from_static(b"hello"))))
    });
    let mut service =
        ServiceBuilder::new().layer(cors()).layer(timeout(secs(9))).layer(one()).service(inner);
    for status in [200, 429] {
        let request = from_a_browser("GET", Full::default());
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(response.status(), status);
        assert!(browser_reads(&response));
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_outside_ends_a_request_that_waits_for_the_store() {
    let store = Gated::new(memory().0);
    let stack = ServiceBuilder::new().layer(timeout(secs(9))).layer(RateLimitLayer::new(
        Global,
        Quota::per_minute(1),
        store,
    ));
    let app = Router::new().route("/", get(async || "hello")).layer(stack);
    let response = app.oneshot(from_a_browser("GET", Body::empty())).await.unwrap();
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
}

#[test]
fn each_format_says_which_fields_browsers_are_to_be_told_of() {
    let names = |format| {
        let layer = one().headers(format);
        layer.exposed_headers().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(HeaderFormat::None), "retry-after");
    assert_eq!(names(HeaderFormat::Draft), "retry-after ratelimit-policy ratelimit");
    let x = "retry-after x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset";
    assert_eq!(names(HeaderFormat::XRateLimit), x);
    assert_eq!(names(HeaderFormat::Both), format!("{x} ratelimit-policy ratelimit"));
}

#[tokio::test]
async fn without_a_cors_layer_outside_a_true_preflight_can_be_let_pass_uncounted() {
    let app = |layer: RateLimitLayer| {
        let options = axum::routing::any(async || "hello");
        Router::new().route("/", options).layer(layer)
    };
    let status = async |app: &Router, request: Request<Body>| {
        app.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    let skipping = app(one().skip_preflights());
    for _ in 0..5 {
        assert_eq!(status(&skipping, from_a_browser("OPTIONS", Body::empty())).await, 200);
    }
    // What only looks like one is counted.
    let plain = Request::options("/").header("origin", "https://a.example");
    assert_eq!(status(&skipping, plain.body(Body::empty()).unwrap()).await, 200);
    assert_eq!(status(&skipping, Request::options("/").body(Body::empty()).unwrap()).await, 429);
    assert_eq!(status(&skipping, from_a_browser("GET", Body::empty())).await, 429);
    let counting = app(one());
    assert_eq!(status(&counting, from_a_browser("OPTIONS", Body::empty())).await, 200);
    assert_eq!(status(&counting, from_a_browser("OPTIONS", Body::empty())).await, 429);
}

#[tokio::test]
async fn a_preflight_of_a_caller_who_is_denied_does_not_pass() {
    let limit = tollgate::Limit::new("requests", Quota::per_minute(1));
    let denying = tollgate::Policy::new("api")
        .limit(Global, limit)
        .deny(tollgate::Callers::matching(|_| true))
        .build()
        .unwrap();
    let limiter = tollgate::Limiter::new(memory().0);
    for layer in [
        RateLimitLayer::with_policy(denying.clone(), &limiter),
        RateLimitLayer::with_policies(denying, &limiter),
    ] {
        let app = Router::new()
            .route("/", axum::routing::any(async || "hello"))
            .layer(layer.skip_preflights());
        let response = app.oneshot(from_a_browser("OPTIONS", Body::empty())).await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
    }
}
