//! What clients are told whose requests are turned away.

use http::Request;
use serde_json::json;
use tollgate::{JwtKeys, Rejection, respond};
use tower::{Layer, ServiceExt};

use super::{Inner, Lines, SECRET, alice, bearing, builder, but, layer, request, send, signed};
use crate::support::field;

#[tokio::test]
async fn whoever_sends_no_token_is_asked_for_one() {
    let layer = layer(JwtKeys::hs256(SECRET));
    let inner = Inner::default();
    let cases: [Lines<'_>; 5] = [
        &[],
        &[("authorization", "")],
        &[("authorization", "Bearer")],
        &[("authorization", "Basic YTpi")],
        &[("x-api-key", "k")],
    ];
    for lines in cases {
        let answer = send(&layer, &inner, request(lines)).await;
        assert_eq!(answer.status, 401, "{lines:?}");
        assert_eq!(answer.challenge(), Some("Bearer realm=\"api\""));
        assert_eq!(answer.body, "the request carries no token");
        assert_eq!(field(&answer.headers, "cache-control"), Some("no-store"));
        assert_eq!(field(&answer.headers, "retry-after"), None);
    }
    assert_eq!(inner.calls(), 0);
}

#[tokio::test]
async fn where_a_token_is_optional_a_bad_one_is_still_refused() {
    let layer = builder(JwtKeys::hs256(SECRET)).optional().build().unwrap();
    let inner = Inner::default();
    assert_eq!(send(&layer, &inner, request(&[])).await.status, 200);
    assert_eq!(inner.calls(), 1);
    for bad in ["x".to_owned(), signed(&but("exp", json!(0))), format!("{}x", signed(&alice()))] {
        assert_eq!(send(&layer, &inner, bearing(&bad)).await.status, 401, "{bad}");
    }
    assert_eq!(inner.calls(), 1);
}

#[tokio::test]
async fn the_scheme_may_be_spelled_and_spaced_in_any_way() {
    let layer = layer(JwtKeys::hs256(SECRET));
    let inner = Inner::default();
    for scheme in ["bearer ", "BEARER ", "Bearer   ", " Bearer\t"] {
        let value = format!("{scheme}{}", signed(&alice()));
        let answer = send(&layer, &inner, request(&[("authorization", &value)])).await;
        assert_eq!(answer.body, "subject alice", "{scheme:?}");
    }
}

#[tokio::test]
async fn answers_come_as_problems_in_grpcs_way_or_as_one_likes() {
    let inner = Inner::default();
    let problem = builder(JwtKeys::hs256(SECRET)).respond(respond::Problem).build().unwrap();
    let answer = send(&problem, &inner, bearing("x")).await;
    assert_eq!(answer.status, 401);
    assert_eq!(field(&answer.headers, "content-type"), Some("application/problem+json"));
    let document: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(document["title"], "the token is malformed");

    let answer = send(&problem, &inner, request(&[("content-type", "application/grpc")])).await;
    assert_eq!((answer.status.as_u16(), &*answer.body), (200, ""));
    assert_eq!(field(&answer.headers, "grpc-status"), Some("16"), "UNAUTHENTICATED");

    let own = builder(JwtKeys::hs256(SECRET)).respond(respond::from_fn(|rejection, _| {
        let mut response = http::Response::new(format!("{}", respond::status(rejection)));
        *response.status_mut() = respond::status(rejection);
        response.headers_mut().insert("www-authenticate", "Bearer realm=\"own\"".parse().unwrap());
        response
    }));
    let answer = send(&own.build().unwrap(), &inner, bearing("x")).await;
    assert_eq!((answer.status.as_u16(), answer.challenge()), (401, Some("Bearer realm=\"own\"")));
    assert_eq!(inner.calls(), 0);
}

#[tokio::test]
async fn layers_outside_see_why_a_request_was_turned_away() {
    let service = layer(JwtKeys::hs256(SECRET)).layer(Inner::default());
    let Ok(response) = service.oneshot(Request::new(())).await;
    let Some(Rejection::NoKey(error)) = response.extensions().get::<Rejection>() else {
        panic!("no rejection")
    };
    assert_eq!(error.message(), "the request carries no token");
}

#[tokio::test]
async fn no_token_and_no_secret_is_shown() {
    let layer = layer(JwtKeys::hs256(SECRET));
    let shown = format!("{layer:?} {:?}", builder(JwtKeys::hs256(SECRET)));
    let secret = std::str::from_utf8(SECRET).unwrap();
    assert!(!shown.contains(secret) && !shown.contains(&format!("{SECRET:?}")), "{shown}");
    assert!(shown.contains("HS256") && shown.contains("https://id.example"), "{shown}");
}
