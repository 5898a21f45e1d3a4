//! Which policy applies to which request: as the router sees it.

use axum::{
    Router,
    body::Body,
    routing::{MethodRouter, any, get, post},
};
use http::{Method, Request, StatusCode};
use tollgate::{
    Global, Limit, Policy, PolicyError, PolicySet, PolicySetBuilder, Quota, RateLimitLayer,
    RequestHead, key,
};
use tower::ServiceExt as _;

use crate::support::limiter;

fn policy(name: &'static str) -> Policy {
    let limit = Limit::new("requests", Quota::per_hour(1_000_000));
    Policy::new(name).limit(Global, limit).build().unwrap()
}

fn set(routes: &[(&str, &'static str)]) -> Result<PolicySet, PolicyError> {
    let add = |set: PolicySetBuilder, (route, name): &(&str, &'static str)| {
        set.route(*route, policy(name))
    };
    routes.iter().fold(PolicySet::builder(), add).build()
}

fn found<'a>(set: &'a PolicySet, method: &str, path: &str) -> &'a str {
    let request = Request::builder().method(method).uri(path).body(()).unwrap();
    set.find(RequestHead::new(&request)).map_or("-", |(policy, _)| policy.name())
}

#[test]
fn the_most_specific_path_goes_first_and_then_the_method() {
    let routes = [
        ("/{*rest}", "rest"),
        ("/users/{id}", "user"),
        ("GET /users/{id}", "read"),
        ("/users/me", "me"),
        ("POST, PUT /users/me", "change"),
        ("DELETE /admin/{*path}", "admin"),
        ("HEAD /probe", "head"),
        ("GET /probe", "get"),
    ];
    let mut reversed = routes;
    reversed.reverse();
    for routes in [routes, reversed] {
        let set = set(&routes).unwrap();
        for (method, path, name) in [
            ("GET", "/users/7", "read"),
            ("HEAD", "/users/7", "read"),
            ("PATCH", "/users/7", "user"),
            ("GET", "/users/me", "me"),
            ("POST", "/users/me", "change"),
            ("PUT", "/users/me", "change"),
            ("DELETE", "/admin/a/b", "admin"),
            ("GET", "/admin/a/b", "rest"),
            ("HEAD", "/probe", "head"),
            ("GET", "/probe", "get"),
            ("POST", "/probe", "rest"),
            ("BREW", "/users/7", "user"),
            ("GET", "/", "rest"),
            ("DELETE", "/admin/", "admin"),
            ("DELETE", "/admin", "rest"),
        ] {
            assert_eq!(found(&set, method, path), name, "{method} {path}");
        }
    }
}

#[test]
fn who_takes_no_route_meets_the_policy_for_the_others() {
    let set = PolicySet::builder().route("/a", policy("a")).otherwise(policy("rest"));
    let set = set.build().unwrap();
    assert_eq!([found(&set, "GET", "/a"), found(&set, "GET", "/b")], ["a", "rest"]);
    let names: Vec<_> = set.policies().map(Policy::name).collect();
    assert_eq!(names, ["a", "rest"]);
    assert!(set.policy("rest").is_some() && set.policy("b").is_none());
}

/// How many requests there were to a route of its own, and how often the router knew them.
struct Spelled {
    counted: u64,
    known: usize,
}

/// Sends `GET`s of these spellings to a router, and to the policies for the same routes.
async fn spell(pattern: &'static str, spellings: &[&str]) -> Spelled {
    let (limiter, _clock) = limiter();
    let limit = Limit::new("requests", Quota::per_hour(1_000));
    let counted = Policy::new("counted").limit(Global, limit).build().unwrap();
    let set = PolicySet::builder().route(pattern, counted.clone()).build().unwrap();
    let app = Router::new()
        .route(pattern, get(async || "here"))
        .layer(RateLimitLayer::with_policies(set, &limiter));
    let mut known = 0;
    for path in spellings {
        let request = Request::get(*path).body(Body::empty()).unwrap();
        let status = app.clone().oneshot(request).await.unwrap().status();
        assert!([StatusCode::OK, StatusCode::NOT_FOUND].contains(&status), "{path}: {status}");
        known += usize::from(status == StatusCode::OK);
    }
    let look = limiter.look(counted.limit("requests").unwrap(), global()).await.unwrap();
    Spelled { counted: 1_000 - look.verdicts()[0].standing().remaining(), known }
}

fn global() -> tollgate::Key {
    use tollgate::KeyExtractor as _;
    let request = Request::new(());
    Global.extract(RequestHead::new(&request)).unwrap()[0].clone()
}

#[tokio::test]
async fn whatever_reaches_a_route_is_counted_by_its_policy_and_nothing_else_is() {
    let spellings = [
        "/users/42",
        "/users/42?x=1",
        "/users/%34%32",
        "/users/42/",
        "//users/42",
        "/users//42",
        "/Users/42",
        "/%75sers/42",
        "/users/./42",
        "/users/../users/42",
        "/users/42;a=b",
        "/users%2F42",
        "/users/4%2F2",
        "/users/42%00",
        "http://example.com/users/42",
        "/users/",
        "/users",
    ];
    let Spelled { counted, known } = spell("/users/{id}", &spellings).await;
    println!("{known} of {} spellings take the route", spellings.len());
    assert_eq!(counted, known as u64);
    assert!((5..spellings.len()).contains(&known));
    let Spelled { counted, known } = spell("/users/42", &spellings).await;
    assert_eq!((counted, known), (3, 3), "as it is, with a query, and in absolute form");
}

#[tokio::test]
async fn parts_of_the_path_are_parts_of_keys_however_they_are_spelled() {
    let (limiter, _clock) = limiter();
    let limit = || Limit::new("requests", Quota::per_hour(2));
    let shop = Policy::new("shop").limit(key::path_param("shop"), limit()).build().unwrap();
    let route = Policy::new("route").limit(key::route(), limit()).build().unwrap();
    let set = PolicySet::builder()
        .route("/shops/{shop}/orders/{id}", shop)
        .route("/a/{x}", route.clone())
        .route("/b/{x}", route);
    let layer = RateLimitLayer::with_policies(set.build().unwrap(), &limiter);
    let app = Router::new().fallback(any(async || "here")).layer(layer);
    let status = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap().status()
    };
    for (path, expected) in [
        ("/shops/Acme/orders/1", 200),
        ("/shops/%41cme/orders/2", 200),
        ("/shops/Acm%65/orders/3", 429),
        ("/shops/acme/orders/4", 200),
        ("/shops/%FF/orders/5", 400),
        ("/a/1", 200),
        ("/a/2", 200),
        ("/a/3", 429),
        ("/b/1", 200),
        ("/c", 200),
    ] {
        assert_eq!(status(path).await.as_u16(), expected, "{path}");
    }
    assert_eq!(key::path_param("shop").key("Acme").as_str(), "param.shop:Acme");
}

#[tokio::test]
async fn a_route_layer_of_axum_knows_the_template() {
    let (limiter, _clock) = limiter();
    let limit = Limit::new("requests", Quota::per_hour(1));
    let policy = Policy::new("each").limit(key::route(), limit).build().unwrap();
    let pages = || -> MethodRouter { get(async || "page") };
    let app: Router = Router::new()
        .route("/a/{x}", pages())
        .nest("/sub", Router::new().route("/b/{y}", pages()))
        .route_layer(RateLimitLayer::with_policy(policy, &limiter));
    for (path, expected) in
        [("/a/1", 200), ("/a/2", 429), ("/sub/b/1", 200), ("/sub/b/2", 429), ("/none", 404)]
    {
        let request = Request::get(path).body(Body::empty()).unwrap();
        assert_eq!(
            app.clone().oneshot(request).await.unwrap().status().as_u16(),
            expected,
            "{path}"
        );
    }
}

#[tokio::test]
async fn without_a_route_such_a_key_is_a_fault_of_the_setup() {
    let (limiter, _clock) = limiter();
    for policy in [
        Policy::new("a").limit(key::route(), Limit::new("l", Quota::per_hour(1))),
        Policy::new("b").limit(key::path_param("id"), Limit::new("l", Quota::per_hour(1))),
    ] {
        let layer = RateLimitLayer::with_policy(policy.build().unwrap(), &limiter);
        let app: Router = Router::new().fallback(post(async || "here")).layer(layer);
        let request = Request::post("/").body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
}

#[test]
fn routes_that_cannot_be_are_errors_that_name_them() {
    for (routes, part) in [
        (&[("users", "a")][..], "the route `users` has no path that begins with `/`"),
        (&[("GET users", "a")], "has no path"),
        (&[("get /users", "a")], "a method that is not in capital letters"),
        (&[("GET, /users", "a")], "a method"),
        (&[("GET,GET /users", "a")], "names a method twice"),
        (&[(" /users", "a")], "a method"),
        (&[("/a b", "a")], "has no path"),
        (&[("GET /a?b", "a")], "a path with `?` or `#`"),
        (&[("/a/{}", "a")], "parameter without a name"),
        (&[("/a/{*rest}/b", "a")], "not at its end"),
        (&[("/a/{x}{y}", "a")], "more than one parameter"),
        (&[("/a/{x}", "a"), ("/a/{y}", "b")], "the route `/a/{y}` cannot be told from `/a/{x}`"),
        (&[("GET /a", "a"), ("GET /a", "b")], "the route `GET /a` cannot be told from `/a`"),
        (&[("/a", "same"), ("/b", "same")], "two policies are named `same`"),
        (&[("/users/:id", "a")], "the segment `:id`: a parameter is written as `{name}`"),
        (&[("/files/*rest", "a")], "the segment `*rest`"),
        (&[("ANY /a", "a")], "the method `ANY`, which there is not"),
        (&[("GET,POTS /a", "a")], "the method `POTS`"),
    ] {
        let error = set(routes).expect_err(part).to_string();
        println!("{error}");
        assert!(error.contains(part), "{error}");
    }
    // One policy at several routes is one.
    let one = policy("one");
    let set = PolicySet::builder().route("/a", one.clone()).route("/b", one.clone()).otherwise(one);
    assert_eq!(set.build().unwrap().policies().len(), 1);
}

#[test]
fn methods_that_no_route_names_are_those_of_routes_without_methods() {
    let set = set(&[("GET /a", "get"), ("/b", "any")]).unwrap();
    for method in [Method::PUT, Method::OPTIONS, Method::CONNECT] {
        assert_eq!(found(&set, method.as_str(), "/a"), "-");
        assert_eq!(found(&set, method.as_str(), "/b"), "any");
    }
}

#[tokio::test]
async fn a_service_that_is_nested_is_counted_at_each_of_its_paths() {
    let (limiter, _clock) = limiter();
    let policy = |name: &'static str| {
        let limit = Limit::new("requests", Quota::per_hour(2));
        Policy::new(name).limit(Global, limit).build().unwrap()
    };
    let set = PolicySet::builder().route("/svc", policy("a")).route("/svc/{*rest}", policy("b"));
    let app: Router = Router::new()
        .nest_service("/svc", Router::new().fallback(any(async || "here")))
        .layer(RateLimitLayer::with_policies(set.build().unwrap(), &limiter));
    for (path, expected) in [("/svc", 200), ("/svc/", 200), ("/svc/x", 200), ("/svc/", 429)] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let status = app.clone().oneshot(request).await.unwrap().status();
        assert_eq!(status.as_u16(), expected, "{path}");
    }
}

#[test]
fn thousands_of_routes_are_built_at_once() {
    let one = policy("one");
    let set = (0..3_000)
        .fold(PolicySet::builder(), |set, at| set.route(format!("GET /r{at}/{{id}}"), one.clone()));
    assert_eq!(found(&set.build().unwrap(), "HEAD", "/r2999/7"), "one");
}
