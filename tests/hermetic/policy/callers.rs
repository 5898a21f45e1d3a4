//! Callers who are not limited, and those who are not admitted.

use std::net::SocketAddr;

use http::{Request, StatusCode};
use tollgate::{
    Callers, ClientIp, Global, Limit, Limiter, OnFailure, Outcome, Policy, PolicyBuilder, Quota,
    RateLimitLayer, Rejection, RequestHead, Ruling, StoreErrorKind, respond,
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
async fn ranges_hold_the_address_of_the_client_whole() {
    let (limiter, _clock) = limiter();
    let client = ClientIp::header("x-real-ip", ["10.0.0.1"]).unwrap().ipv6_prefix(32).unwrap();
    let ranges = ["192.0.2.0/30", "::ffff:198.51.100.0/120", " 2001:db8::1 "];
    let policy = Policy::new("api")
        .limit(Global, Limit::new("requests", Quota::per_minute(60)))
        .deny(Callers::within(client, ranges).unwrap())
        .build()
        .unwrap();
    for (peer, told, within) in [
        ("10.0.0.1", "192.0.2.3", true),
        ("10.0.0.1", "192.0.2.4", false),
        ("10.0.0.1", "::ffff:192.0.2.3", true),
        ("10.0.0.1", "198.51.100.255", true),
        ("10.0.0.1", "2001:db8::1", true),
        ("10.0.0.1", "2001:db8::2", false),
        // Nobody believes this one.
        ("10.0.0.2", "192.0.2.3", false),
        ("192.0.2.3", "10.0.0.1", true),
    ] {
        let mut request = Request::get("/").header("x-real-ip", told).body(()).unwrap();
        request.extensions_mut().insert(SocketAddr::new(peer.parse().unwrap(), 4711));
        let ruling = limiter.decide(&policy, RequestHead::new(&request)).await;
        let blocked = matches!(ruling, Ruling::Reject(Rejection::Blocked));
        assert_eq!(blocked, within, "{told} from {peer}");
    }
    let ruling = limiter.decide(&policy, RequestHead::new(&Request::new(()))).await;
    assert!(matches!(ruling, Ruling::Admit(_)), "{ruling:?}");
}

#[test]
fn a_range_that_is_none_is_named() {
    for range in ["10.0.0.0/33", "somebody", "", "unix:"] {
        let error = Callers::within(ClientIp::peer(), ["::1", range]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{range:?} is neither an address such as `::1` nor a range such as `10.0.0.0/8`"
            )
        );
    }
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
