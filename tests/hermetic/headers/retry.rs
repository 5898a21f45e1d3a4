//! `Retry-After` is true: who waits for it passes, and it is never 0.

use std::{collections::BTreeSet, time::Duration};

use http::StatusCode;
use tollgate::{Clock, Limit, Quota, ResetFormat, Timestamp};

use crate::support::{Client, number, policy, secs};

fn limits() -> Vec<Limit> {
    let quotas = [
        Quota::per_second(1),
        Quota::per_second(3),
        Quota::per_second(5).burst(2),
        Quota::per_second(1_001),
        Quota::per_minute(1),
        Quota::per_minute(7),
        Quota::per_minute(59).burst(3),
        Quota::per_hour(1),
        Quota::per_hour(7).burst(2),
        Quota::per_day(1),
        Quota::per_day(11),
        Quota::new(7, Duration::from_nanos(10_123_456_789)).unwrap(),
        Quota::new(1, secs(86_400 * 365)).unwrap(),
    ];
    let mut limits = Vec::new();
    for quota in quotas {
        for cost in BTreeSet::from([1, 2, quota.capacity().div_ceil(2), quota.capacity()]) {
            if cost <= quota.capacity() {
                limits.push(Limit::new("tries", quota).cost(cost));
            }
        }
    }
    limits
}

/// A client that was denied, at some odd time after its last success, and what it was told.
async fn denied(limit: &Limit) -> (Client, http::Response<tollgate::ResponseBody<String>>) {
    let layer = |layer: tollgate::RateLimitLayer| layer.reset(ResetFormat::EpochSeconds);
    let mut client = Client::with(policy("api", [limit.clone()]), layer);
    client.clock.advance(Duration::from_micros(777_777));
    client.exhaust().await;
    client.clock.advance(Duration::from_micros(123));
    let response = client.send().await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    (client, response)
}

#[tokio::test]
async fn a_client_that_waits_exactly_that_long_is_admitted_and_a_second_earlier_is_not() {
    for limit in limits() {
        let (mut client, response) = denied(&limit).await;
        let wait = number(&response, "retry-after").unwrap();
        assert!(wait >= 1, "{limit:?}");
        let start = client.clock.now();
        client.clock.set(start.saturating_add(secs(wait - 1)));
        if wait > 1 {
            assert_eq!(client.send().await.status(), StatusCode::TOO_MANY_REQUESTS, "{limit:?}");
        }
        client.clock.set(start.saturating_add(secs(wait)));
        assert_eq!(client.send().await.status(), StatusCode::OK, "{limit:?}");
    }
}

#[tokio::test]
async fn a_client_that_believes_reset_or_the_drafts_time_instead_is_admitted_too() {
    for limit in limits() {
        let (mut client, response) = denied(&limit).await;
        let reset = number(&response, "x-ratelimit-reset").unwrap();
        client.clock.set(Timestamp::from_micros(reset * 1_000_000));
        assert_eq!(client.send().await.status(), StatusCode::OK, "{limit:?}");

        let (mut client, response) = denied(&limit).await;
        let text = response.headers()["ratelimit"].to_str().unwrap();
        let (_, time) = text.rsplit_once(";t=").unwrap();
        client.clock.advance(secs(time.parse().unwrap()));
        assert_eq!(client.send().await.status(), StatusCode::OK, "{limit:?}");
    }
}

#[tokio::test]
async fn all_that_names_the_moment_agrees() {
    for limit in limits() {
        let (client, response) = denied(&limit).await;
        let wait = number(&response, "retry-after").unwrap();
        let text = response.headers()["ratelimit"].to_str().unwrap();
        assert_eq!(text, format!(r#""tries";r=0;t={wait}"#));
        // Both are rounded up to whole seconds, one from now and one from the epoch.
        let reset = number(&response, "x-ratelimit-reset").unwrap() * 1_000_000;
        let by_wait = client.clock.now().as_micros() + wait * 1_000_000;
        assert!(reset.abs_diff(by_wait) < 1_000_000, "{limit:?}: {reset} and {by_wait}");
    }
}

#[tokio::test]
async fn of_several_denying_limits_it_is_not_earlier_than_any_of_them() {
    let limits = [
        Limit::new("a", Quota::per_minute(7)).cost(3),
        Limit::new("b", Quota::per_minute(2)),
        Limit::new("c", Quota::per_hour(9)).cost(5),
        Limit::new("d", Quota::per_second(1)),
    ];
    let mut client = Client::of(policy("api", limits));
    let (_, response) = client.exhaust().await;
    let wait = number(&response, "retry-after").unwrap();
    let text = response.headers()["ratelimit"].to_str().unwrap();
    let times: Vec<u64> = text
        .split(";t=")
        .skip(1)
        .map(|rest| rest.split(',').next().unwrap().parse().unwrap())
        .collect();
    assert!(times.len() >= 2, "{text}");
    assert_eq!(times.iter().max(), Some(&wait), "{text}");
    client.clock.advance(secs(wait));
    assert_eq!(client.send().await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_cost_that_can_never_pass_has_none() {
    let mut client =
        Client::of(policy("api", [Limit::new("dear", Quota::per_minute(5)).cost_by(|_| 6)]));
    let response = client.send().await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    for name in ["retry-after", "x-ratelimit-reset"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    assert_eq!(response.headers()["ratelimit"], r#""dear";r=0"#);
    // And has cost nothing.
    assert_eq!(number(&response, "x-ratelimit-remaining"), Some(5));
}

#[tokio::test]
async fn an_admitted_response_has_none() {
    let mut client = Client::of(policy("api", [Limit::new("tries", Quota::per_minute(1))]));
    assert!(!client.send().await.headers().contains_key("retry-after"));
}

#[tokio::test]
async fn jitter_spreads_clients_and_only_ever_adds() {
    let policy = || policy("api", [Limit::new("tries", Quota::per_minute(6))]);
    let mut client = Client::with(policy(), |layer| layer.retry_jitter(secs(5)));
    let mut plain = Client::of(policy());
    client.exhaust().await;
    plain.exhaust().await;
    let mut waits = BTreeSet::new();
    for _ in 0..500 {
        let response = client.send().await;
        assert_eq!(response.headers()["ratelimit"], r#""tries";r=0;t=10"#);
        waits.insert(number(&response, "retry-after").unwrap());
        assert_eq!(number(&plain.send().await, "retry-after"), Some(10));
    }
    assert_eq!(waits, (10..=15).collect());
}
