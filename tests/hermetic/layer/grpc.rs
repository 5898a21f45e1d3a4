//! Around a tonic service: a bare 429 would reach a gRPC client as UNAVAILABLE, and be tried again.

use std::net::SocketAddr;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tollgate::{
    ApiKey, Global, KeyError, KeyExtractor, Keys, Limit, Limiter, OnFailure, Policy, Quota,
    RateLimitLayer, RequestHead, StoreErrorKind, respond,
};
use tonic::{
    Code,
    transport::{Endpoint, Server},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tower::{Layer, ServiceExt};

use crate::support::{Broken, Flaky, field, memory};

/// The health service of tonic, which knows one service, behind this layer.
async fn serve(layer: RateLimitLayer) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(layer).add_service(health);
    tokio::spawn(server.serve_with_incoming(incoming));
    address
}

#[tokio::test]
async fn a_denied_call_is_resource_exhausted_and_says_when_to_come_back() {
    let layer = RateLimitLayer::new(Global, Quota::per_minute(2), memory().0);
    let address = serve(layer).await;
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = HealthClient::new(endpoint.connect().await.unwrap());
    for left in ["1", "0"] {
        let answer = client.check(HealthCheckRequest::default()).await.unwrap();
        assert_eq!(answer.metadata().get("x-ratelimit-remaining").unwrap(), left);
    }
    let status = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "too many requests");
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "30000");
}

async fn answer(
    layer: RateLimitLayer,
    content_type: &str,
) -> Response<tollgate::ResponseBody<tonic::body::Body>> {
    let (_, health) = tonic_health::server::health_reporter();
    let request =
        Request::post("/grpc.health.v1.Health/Check").header("content-type", content_type);
    let request = request.body(tonic::body::Body::default()).unwrap();
    layer.layer(health).oneshot(request).await.unwrap()
}

/// A policy that denies every call.
fn none(key: impl KeyExtractor, limit: Limit) -> RateLimitLayer {
    let policy = Policy::new("none").limit(key, limit).build().unwrap();
    RateLimitLayer::with_policy(policy, &Limiter::new(memory().0))
}

fn too_dear() -> Limit {
    Limit::new("tries", Quota::per_minute(1)).cost_by(|_| 2)
}

#[tokio::test]
async fn every_way_to_turn_a_call_away_is_trailers_only_with_status_200() {
    struct Garbled;
    impl KeyExtractor for Garbled {
        fn extract(&self, _: RequestHead<'_>) -> Result<Keys, KeyError> {
            Err(KeyError::invalid("that is no key"))
        }
    }
    let closed = Policy::new("api").limit(Global, Limit::new("tries", Quota::per_minute(1)));
    let closed = closed.on_failure(OnFailure::Deny).build().unwrap();
    let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Unreachable));
    let closed = RateLimitLayer::with_policy(closed, &Limiter::new(store));
    let one = || Limit::new("tries", Quota::per_minute(1));
    let cases = [
        (none(Global, too_dear()), Code::ResourceExhausted),
        (none(Global, too_dear()).respond(respond::Problem), Code::ResourceExhausted),
        (closed, Code::Unavailable),
        (none(ApiKey::bearer(), one()), Code::Unauthenticated),
        (none(Garbled, one()), Code::InvalidArgument),
    ];
    for (layer, code) in cases {
        for content_type in ["application/grpc", "application/grpc+proto"] {
            let response = answer(layer.clone(), content_type).await;
            assert_eq!(response.status(), StatusCode::OK, "{code:?}");
            let headers = response.headers();
            let number = (code as i32).to_string();
            assert_eq!(field(headers, "grpc-status"), Some(&*number), "{code:?}");
            assert_eq!(field(headers, "content-type"), Some("application/grpc"), "{code:?}");
            assert!(field(headers, "grpc-message").is_some(), "{code:?}");
            let body = response.into_body().collect().await.unwrap();
            assert!(body.trailers().is_none() && body.to_bytes().is_empty(), "{code:?}");
        }
    }
}

#[tokio::test]
async fn a_call_that_can_never_pass_is_told_not_to_come_back() {
    let response = answer(none(Global, too_dear()), "application/grpc").await;
    assert_eq!(field(response.headers(), "grpc-retry-pushback-ms"), Some("-1"));
    assert_eq!(field(response.headers(), "retry-after"), None);
}

#[tokio::test]
async fn a_wait_that_no_pushback_can_hold_is_cut_to_the_longest() {
    let (store, _) = memory();
    let quota = Quota::new(1, std::time::Duration::from_secs(86_400 * 365)).unwrap();
    let limiter = Limiter::new(store);
    let policy = Policy::new("year").limit(Global, Limit::new("one", quota)).build().unwrap();
    let layer = RateLimitLayer::with_policy(policy, &limiter);
    answer(layer.clone(), "application/grpc").await;
    let response = answer(layer, "application/grpc").await;
    assert_eq!(field(response.headers(), "grpc-retry-pushback-ms"), Some("2147483647"));
}

#[tokio::test]
async fn who_does_not_speak_grpc_gets_a_plain_429() {
    let response = answer(none(Global, too_dear()), "application/json").await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(response.headers(), "grpc-status"), None);
}
