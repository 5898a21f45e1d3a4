//! Callers who are not limited, and those who are not admitted.

use http::{Request, StatusCode};
use tollgate::{
    Callers, Limit, Limiter, OnFailure, Outcome, Policy, PolicyBuilder, Quota, RateLimitLayer,
    Rejection, RequestHead, Ruling, StoreErrorKind, respond,
};
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::support::{Broken, Flaky, Probe, about, asking, limiter, memory};

#[derive(Clone)]
struct Banned;

fn api() -> PolicyBuilder {
    Policy::new("api")
        .limit(about(), Limit::new("requests", Quota::per_minute(1)))
        .allow(Callers::with_keys(about(), ["friend", "both"]))
        .deny(Callers::with_keys(about(), ["enemy", "both"]))
        .deny(Callers::matching(|head| head.extension::<Banned>().is_some()))
}

async fn send(limiter: &Limiter, request: &Request<()>) -> Ruling {
    limiter.decide(&api().build().unwrap(), RequestHead::new(request)).await
}

#[tokio::test]
async fn who_is_allowed_passes_uncounted_and_who_is_denied_does_not_pass() {
    let (limiter, _clock) = limiter();
    for _ in 0..5 {
        let ruling = send(&limiter, &asking(&["friend"])).await;
        assert!(matches!(ruling, Ruling::Admit(it) if it.outcome() == Outcome::Skipped));
        for enemy in ["enemy", "both"] {
            let ruling = send(&limiter, &asking(&[enemy])).await;
            assert!(matches!(ruling, Ruling::Reject(Rejection::Blocked)), "{enemy}");
        }
    }
    let mut banned = asking(&["somebody"]);
    banned.extensions_mut().insert(Banned);
    assert!(matches!(send(&limiter, &banned).await, Ruling::Reject(Rejection::Blocked)));
    // Nothing of that was charged.
    assert!(matches!(send(&limiter, &asking(&["somebody"])).await, Ruling::Admit(_)));
    assert!(matches!(send(&limiter, &asking(&["somebody"])).await, Ruling::Reject(_)));
}

#[tokio::test]
async fn a_request_of_which_no_key_can_be_drawn_is_on_no_list() {
    let (limiter, _clock) = limiter();
    let ruling = send(&limiter, &Request::new(())).await;
    assert!(matches!(ruling, Ruling::Reject(Rejection::NoKey(_))), "{ruling:?}");
}

#[tokio::test]
async fn lists_hold_while_the_store_fails() {
    let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Unreachable));
    let limiter = Limiter::new(store.clone());
    let policy = api().on_failure(OnFailure::Deny).build().unwrap();
    let mut service = RateLimitLayer::with_policy(policy, &limiter).layer(Probe::new());
    for (who, status) in [
        ("friend", StatusCode::OK),
        ("enemy", StatusCode::FORBIDDEN),
        ("x", StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let response = service.ready().await.unwrap().call(asking(&[who])).await.unwrap();
        assert_eq!(response.status(), status, "{who}");
    }
    assert_eq!(store.asked(), 1);
}

#[tokio::test]
async fn who_is_denied_is_told_so_in_every_form() {
    let (limiter, _clock) = limiter();
    let layer = RateLimitLayer::with_policy(api().build().unwrap(), &limiter);
    let mut plain = layer.clone().layer(Probe::new());
    let response = plain.ready().await.unwrap().call(asking(&["enemy"])).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!response.headers().contains_key("retry-after"));
    assert!(!response.headers().contains_key("x-ratelimit-limit"));
    assert_eq!(response.headers()["cache-control"], "no-store");

    let mut problem = layer.respond(respond::Problem).layer(Probe::new());
    let response = problem.ready().await.unwrap().call(asking(&["enemy"])).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(response.headers()["content-type"], "application/problem+json");

    let mut call = asking(&["enemy"]);
    call.headers_mut().insert("content-type", http::HeaderValue::from_static("application/grpc"));
    let response = plain.ready().await.unwrap().call(call).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["grpc-status"], "7");
}
