//! Routes that no policy applies to.

use http::Request;
use tollgate::{
    Global, Limit, Policy, PolicySet, Quota, RateLimitLayer, RequestHead,
    config::{self, Config, Extractors},
};
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

#[tokio::test]
async fn a_file_may_name_them() {
    let text = "exempt = ['GET /healthz']\npolicy = [{ name = 'rest', otherwise = true, \
                limit = [{ name = 'requests', key = 'global', quota = '1/h' }] }]";
    let set = config::from_toml(text, &Extractors::new()).unwrap();
    let paths = ["/healthz", "/", "/healthz", "/"];
    assert_eq!(statuses(set, &paths).await, [200, 200, 200, 429]);
    let error = config::from_toml(&text.replace("GET /h", "h"), &Extractors::new()).unwrap_err();
    assert_eq!((error.line(), error.column()), (Some(1), Some(11)));
    assert!(error.to_string().contains("has no path that begins with `/`"), "{error}");
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

/// A program may have its own tables around those of the limits.
#[test]
fn what_is_wrong_is_found_in_a_larger_text() {
    let text = "listen = ':80'\n\n[[policy]]\nname = 'a'\notherwise = true\n\
                limit = [{ name = 'b', key = 'ip', quota = '1/x' }]\n";
    let mut config: Config = Config::from_toml(text.trim_start_matches("listen = ':80'")).unwrap();
    let error = config.build(&Extractors::new()).unwrap_err();
    assert_eq!(error.line(), None);
    let located = error.in_text(text);
    assert_eq!((located.line(), located.column()), (Some(6), Some(44)));
    assert!(
        located.to_string().starts_with("line 6, column 44, policy `a`, limit `b`: quota = '1/x'")
    );

    // What does not stand in the text is said to be where it would.
    config.policies[0].limits[0].quota = "1/s".into();
    config.policies[0].routes = vec!["/a{".into()];
    let located = config.build(&Extractors::new()).unwrap_err().in_text(text);
    assert_eq!(located.line(), Some(3), "{located}");
}
