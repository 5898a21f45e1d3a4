//! Routes that no policy applies to.

use http::Request;
use tollgate::{Global, Limit, Policy, PolicySet, Quota, RateLimitLayer, RequestHead};
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::support::{Probe, limiter};

fn once_an_hour() -> Policy {
    let limit = Limit::new("requests", Quota::per_hour(1));
    Policy::new("rest").limit(Global, limit).build().unwrap()
}

fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).unwrap()
}

async fn statuses(set: PolicySet, paths: &[&str]) -> Vec<u16> {
    let (limiter, _clock) = limiter();
    let mut service = RateLimitLayer::with_policies(set, &limiter).layer(Probe::new());
    let mut statuses = Vec::new();
    for path in paths {
        statuses
            .push(service.ready().await.unwrap().call(get(path)).await.unwrap().status().as_u16());
    }
    statuses
}

#[tokio::test]
async fn they_are_not_limited_and_charge_nobody() {
    let set = PolicySet::builder().exempt("GET /healthz").otherwise(once_an_hour()).build();
    let set = set.unwrap();
    assert!(set.find(RequestHead::new(&get("/healthz"))).is_none());
    let paths = ["/healthz", "/healthz", "/", "/", "/healthz", "/healthz/"];
    assert_eq!(statuses(set, &paths).await, [200, 200, 200, 429, 200, 429]);
}

#[test]
fn each_route_is_told_as_it_was_given() {
    let policy = once_an_hour();
    let set = PolicySet::builder()
        .route("GET,PUT /a/{id}", policy.clone())
        .exempt("/a/{id}")
        .exempt("POST /a/b")
        .otherwise(policy)
        .build()
        .unwrap();
    for (method, path, route) in [
        ("GET", "/a/b", Some("GET,PUT /a/{id}")),
        ("POST", "/a/b", Some("POST /a/b")),
        ("POST", "/a/c", Some("/a/{id}")),
        ("GET", "/", None),
    ] {
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        assert_eq!(set.route_of(RequestHead::new(&request)), route, "{method} {path}");
    }
}

#[test]
fn one_that_is_there_twice_is_an_error() {
    let set = PolicySet::builder().exempt("/a").route("/a", once_an_hour()).build();
    let error = set.unwrap_err().to_string();
    assert!(error.contains("the route `/a` cannot be told from `/a`"), "{error}");
}
