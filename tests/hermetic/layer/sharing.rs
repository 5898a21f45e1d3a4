//! One layer is one limit, however often axum, hyper and tower clone it.

use http::StatusCode;
use tollgate::{
    Global, HeaderFormat, Limit, Limiter, MemoryStore, Policy, Quota, RateLimit, RateLimitLayer,
};
use tower::Layer;

use crate::support::{Client, Probe, memory, policy, send};

/// A service as a user keeps it: a layer has a name, and no type parameters.
struct Server {
    layer: RateLimitLayer,
    services: Vec<RateLimit<Probe>>,
}

impl Server {
    fn new() -> Self {
        fn layer() -> RateLimitLayer {
            RateLimitLayer::new(Global, Quota::per_minute(5), memory().0)
        }
        Self { layer: layer().headers(HeaderFormat::None), services: Vec::new() }
    }
}

#[tokio::test]
async fn a_layer_can_be_named_stored_and_returned() {
    let mut server = Server::new();
    server.services.push(server.layer.layer(Probe::new()));
    assert_eq!(send(&mut server.services[0]).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn clones_of_a_layer_and_of_its_services_share_one_limit() {
    let mut server = Server::new();
    for _ in 0..3 {
        let service = server.layer.clone().layer(Probe::new());
        server.services.extend([service.clone(), service]);
    }
    let mut statuses = Vec::new();
    for service in &mut server.services {
        statuses.push(send(service).await.status());
    }
    assert_eq!(statuses[..5], [StatusCode::OK; 5]);
    assert_eq!(statuses[5], StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn changing_a_clone_of_a_layer_changes_neither_the_other_nor_the_limit_they_share() {
    let layer = RateLimitLayer::new(Global, Quota::per_minute(2), memory().0);
    let silent = layer.clone().headers(HeaderFormat::None);
    let loud = send(&mut layer.layer(Probe::new())).await;
    let quiet = send(&mut silent.layer(Probe::new())).await;
    assert!(loud.headers().contains_key("ratelimit"));
    assert!(quiet.headers().is_empty());
    let denied = send(&mut layer.layer(Probe::new())).await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn one_limiter_serves_several_policies_each_with_its_own_buckets() {
    let limiter = Limiter::new(memory().0);
    let limit = || Limit::new("tries", Quota::per_minute(2));
    let [a, b]: [Policy; 2] = ["a", "b"].map(|name| policy(name, [limit()]));
    let mut a = Client::sharing(&limiter, a);
    let mut b = Client::sharing(&limiter, b);
    assert_eq!(a.exhaust().await.0, 2);
    assert_eq!(b.exhaust().await.0, 2);
}

#[tokio::test]
async fn two_stores_never_share_a_limit() {
    let one = RateLimitLayer::new(Global, Quota::per_minute(1), MemoryStore::new());
    let two = RateLimitLayer::new(Global, Quota::per_minute(1), MemoryStore::new());
    for layer in [one, two] {
        assert_eq!(send(&mut layer.layer(Probe::new())).await.status(), StatusCode::OK);
    }
}
