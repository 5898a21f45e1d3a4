//! Around every part of an axum application.

use axum::{
    Extension, Router,
    body::Body,
    routing::{any, get, post},
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tollgate::{Decision, Global, Limit, Limiter, Quota, RateLimitLayer, ResponseBody};
use tower::{ServiceBuilder, ServiceExt, util::option_layer};

use crate::support::{memory, policy};

async fn left(Extension(decision): Extension<Decision>) -> String {
    decision.remaining().unwrap().to_string()
}

async fn plain() -> &'static str {
    "plain"
}

/// Two a minute, for all together.
fn two() -> RateLimitLayer {
    RateLimitLayer::new(Global, Quota::per_minute(2), memory().0)
}

async fn status(app: &Router, method: Method, path: &str) -> u16 {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    app.clone().oneshot(request).await.unwrap().status().as_u16()
}

async fn statuses(app: &Router, path: &str, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(status(app, Method::GET, path).await);
    }
    statuses
}

#[tokio::test]
async fn around_a_router_all_routes_share_the_limit() {
    let app = Router::new().route("/a", get(left)).route("/b", get(left)).layer(two());
    assert_eq!(statuses(&app, "/a", 1).await, [200]);
    assert_eq!(statuses(&app, "/b", 2).await, [200, 429]);
    assert_eq!(statuses(&app, "/a", 1).await, [429]);
}

#[tokio::test]
async fn around_a_router_what_no_route_matches_is_limited_too() {
    let app = Router::new().route("/a", get(plain)).layer(two());
    assert_eq!(statuses(&app, "/nowhere", 3).await, [404, 404, 429]);
    assert_eq!(statuses(&app, "//a", 1).await, [429]);
}

#[tokio::test]
async fn around_a_router_health_checks_added_later_are_not_limited() {
    let app = Router::new().route("/", get(left)).layer(two()).route("/healthz", get(plain));
    assert_eq!(statuses(&app, "/", 3).await, [200, 200, 429]);
    assert_eq!(statuses(&app, "/healthz", 100).await, [200; 100]);
}

#[tokio::test]
async fn around_a_route_only_that_method_of_that_path_is_limited() {
    let app = Router::new().route("/a", get(plain).layer(two()).post(plain));
    assert_eq!(statuses(&app, "/a", 3).await, [200, 200, 429]);
    assert_eq!(status(&app, Method::POST, "/a").await, 200);
}

#[tokio::test]
async fn around_a_method_router_all_its_methods_share_the_limit() {
    let methods = get(left).post(left).delete(left).layer(two());
    let app = Router::new().route("/a", methods).route("/b", any(plain));
    assert_eq!(status(&app, Method::POST, "/a").await, 200);
    assert_eq!(status(&app, Method::DELETE, "/a").await, 200);
    assert_eq!(status(&app, Method::GET, "/a").await, 429);
    assert_eq!(status(&app, Method::GET, "/b").await, 200);
}

#[tokio::test]
async fn by_route_layer_what_no_route_matches_is_left_alone() {
    let app = Router::new().route("/a", get(left)).route_layer(two());
    assert_eq!(statuses(&app, "/nowhere", 9).await, [404; 9]);
    assert_eq!(statuses(&app, "/a", 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn around_a_nested_router_only_what_is_nested_is_limited() {
    let api = Router::new().route("/list", get(left)).route("/add", post(left)).layer(two());
    let app = Router::new().route("/", get(plain)).nest("/api", api);
    assert_eq!(status(&app, Method::POST, "/api/add").await, 200);
    assert_eq!(statuses(&app, "/api/list", 2).await, [200, 429]);
    assert_eq!(statuses(&app, "/", 9).await, [200; 9]);
}

#[tokio::test]
#[cfg(feature = "axum")]
async fn with_the_peer_that_axum_mocks_for_tests() {
    use axum::extract::connect_info::MockConnectInfo;

    let peer = |last| MockConnectInfo(std::net::SocketAddr::from(([192, 0, 2, last], 4711)));
    let limited = Router::new().route("/", get(left)).layer(RateLimitLayer::new(
        tollgate::PeerIp,
        Quota::per_minute(1),
        memory().0,
    ));
    for last in [1, 2] {
        let app = limited.clone().layer(peer(last));
        assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
    }
}

#[tokio::test]
async fn with_state_and_a_policy_of_a_shared_limiter() {
    let limiter = Limiter::new(memory().0);
    let login = policy("login", [Limit::new("tries", Quota::per_minute(1))]);
    let app =
        Router::new()
            .route(
                "/login",
                post(|axum::extract::State(name): axum::extract::State<&'static str>| async move {
                    name
                })
                .layer(RateLimitLayer::with_policy(login, &limiter)),
            )
            .with_state("state");
    let request = || Request::post("/login").body(Body::empty()).unwrap();
    let response = app.clone().oneshot(request()).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "state");
    assert_eq!(app.oneshot(request()).await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
}

/// A layer that may be absent must not change the type of the body.
#[tokio::test]
async fn a_layer_that_is_switched_by_configuration_keeps_the_type_of_the_body() {
    for (on, expected) in [(true, [200, 200, 429]), (false, [200, 200, 200])] {
        let limit = ServiceBuilder::new()
            .map_response(|response: Response<ResponseBody<Body>>| response.map(Body::new))
            .layer(two());
        let app = Router::new().route("/", get(plain)).layer(option_layer(on.then_some(limit)));
        assert_eq!(statuses(&app, "/", 3).await, expected);
    }
}
