//! A service that answers for an upstream may carry the upstream's own fields: one set remains.

use http::{HeaderMap, Response, StatusCode};
use tollgate::{HeaderFormat, Limit, Limiter, Quota, RateLimitLayer};
use tower::Layer;

use super::formats::sent;
use crate::support::{Probe, memory, policy, send, x_fields};

type Lines = &'static [(&'static str, &'static str)];

fn layer(quantity: u64) -> RateLimitLayer {
    let policy = policy("own", [Limit::new("own", Quota::per_minute(quantity))]);
    RateLimitLayer::with_policy(policy, &Limiter::new(memory().0))
}

/// The answer to the first of ten requests, by an upstream that answers so.
async fn through(status: StatusCode, lines: Lines) -> (StatusCode, HeaderMap) {
    let response = send(&mut layer(10).layer(Probe::answering(status, lines))).await;
    let (parts, _) = response.into_parts();
    (parts.status, parts.headers)
}

fn headers(lines: Lines) -> HeaderMap {
    lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn ours(headers: HeaderMap) -> bool {
    let mut response = Response::new(());
    *response.headers_mut() = headers;
    sent(&response).len() == 5 && x_fields(&response)[..2] == [Some(10), Some(9)]
}

#[tokio::test]
async fn a_stricter_upstream_is_left_as_it_is() {
    let cases: [Lines; 6] = [
        &[("x-ratelimit-limit", "60"), ("x-ratelimit-remaining", "8"), ("x-ratelimit-reset", "5")],
        &[("x-ratelimit-remaining", "9")],
        &[("ratelimit-limit", "60"), ("ratelimit-remaining", "0"), ("ratelimit-reset", "5")],
        &[("ratelimit", r#""up";r=3;t=9"#), ("ratelimit-policy", r#""up";q=5;w=60"#)],
        &[("ratelimit", r#""a";r=500;t=9, "b"; r=3"#)],
        &[("x-ratelimit-remaining", "8, 8;w=60"), ("x-ratelimit-limit", "9")],
    ];
    for lines in cases {
        assert_eq!(through(StatusCode::OK, lines).await.1, headers(lines));
    }
}

#[tokio::test]
async fn a_looser_upstream_is_replaced_whatever_fields_it_uses() {
    let cases: [Lines; 4] = [
        &[("x-ratelimit-limit", "60"), ("x-ratelimit-remaining", "10"), ("x-ratelimit-reset", "5")],
        &[("ratelimit-limit", "60"), ("ratelimit-remaining", "59"), ("ratelimit-reset", "5")],
        &[("ratelimit", r#""up";r=30;t=9"#), ("ratelimit-policy", r#""up";q=50;w=60"#)],
        &[("ratelimit-policy", r#""up";q=50;w=60"#), ("x-ratelimit-reset", "5")],
    ];
    for lines in cases {
        let (_, headers) = through(StatusCode::OK, lines).await;
        assert!(ours(headers.clone()), "{lines:?}: {headers:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_cannot_be_read_is_replaced() {
    let cases: [Lines; 6] = [
        &[("x-ratelimit-remaining", "plenty")],
        &[("x-ratelimit-remaining", "")],
        &[("x-ratelimit-remaining", "-1")],
        &[("x-ratelimit-remaining", "99999999999999999999999")],
        &[("ratelimit", "\"up\";r=;t=9")],
        &[("ratelimit", "\"up\";r;t=9")],
    ];
    for lines in cases {
        let (_, headers) = through(StatusCode::OK, lines).await;
        assert!(ours(headers.clone()), "{lines:?}: {headers:?}");
    }
}

#[tokio::test]
async fn other_fields_of_an_upstream_stay() {
    let lines: Lines = &[("x-ratelimit-remaining", "99"), ("retry-after", "7"), ("etag", "\"a\"")];
    let (_, headers) = through(StatusCode::SERVICE_UNAVAILABLE, lines).await;
    assert_eq!(headers["retry-after"], "7");
    assert_eq!(headers["etag"], "\"a\"");
    assert!(!headers.contains_key("cache-control"));
}

#[tokio::test]
async fn what_an_upstream_says_when_it_denies_is_not_contradicted() {
    let cases: [Lines; 4] = [
        &[],
        &[("retry-after", "30")],
        &[("retry-after", "30"), ("x-ratelimit-remaining", "50")],
        &[("retry-after", "30"), ("x-ratelimit-limit", "5"), ("x-ratelimit-reset", "30")],
    ];
    for lines in cases {
        let answer = through(StatusCode::TOO_MANY_REQUESTS, lines).await;
        assert_eq!(answer, (StatusCode::TOO_MANY_REQUESTS, headers(lines)));
    }
}

#[tokio::test]
async fn behind_two_layers_an_upstream_is_heard_as_behind_one() {
    let up: Lines = &[("x-ratelimit-limit", "9"), ("x-ratelimit-remaining", "6")];
    // (outer, inner, what remains): the inner leaves the upstream's, so does the outer if it is looser.
    let cases = [(8, 9, [9, 6]), (5, 9, [5, 4]), (9, 5, [5, 4]), (3, 5, [3, 2])];
    for format in [HeaderFormat::Both, HeaderFormat::None] {
        for (outer, inner, [limit, remaining]) in cases {
            // One that tells nothing changes nothing, also of what an upstream told.
            let inner = layer(inner).headers(format);
            if format == HeaderFormat::None && (outer, limit) == (9, 5) {
                continue;
            }
            let mut service = layer(outer).layer(inner.layer(Probe::answering(StatusCode::OK, up)));
            let response = send(&mut service).await;
            assert_eq!(
                x_fields(&response)[..2],
                [Some(limit), Some(remaining)],
                "{outer} {format:?}"
            );
        }
    }
}

#[tokio::test]
async fn behind_two_layers_a_denial_by_an_upstream_is_not_contradicted() {
    let lines: Lines = &[("retry-after", "30"), ("x-ratelimit-remaining", "50")];
    let probe = Probe::answering(StatusCode::TOO_MANY_REQUESTS, lines);
    let response = send(&mut layer(3).layer(layer(4).layer(probe))).await;
    assert_eq!(*response.headers(), headers(lines));
}

#[tokio::test]
async fn what_a_layer_wrote_over_an_upstream_is_no_upstream_to_the_next() {
    let up: Lines = &[("x-ratelimit-limit", "9"), ("x-ratelimit-remaining", "6")];
    // Two further requests are fewer than four, though 40 units are more.
    let dear = policy("dear", [Limit::new("dear", Quota::per_minute(60)).cost(20)]);
    let outer = RateLimitLayer::with_policy(dear, &Limiter::new(memory().0));
    let inner = layer(9).layer(Probe::answering(StatusCode::OK, up));
    let response = send(&mut outer.layer(layer(5).layer(inner))).await;
    assert_eq!(x_fields(&response)[..2], [Some(60), Some(40)]);
}
