//! `X-RateLimit-Limit`, `-Remaining` and `-Reset`.

use std::time::Duration;

use http::StatusCode;
use tollgate::{Clock, Global, Limit, Limiter, Policy, Quota, ResetFormat};

use crate::support::{Client, limiter, policy, second, secs, x_fields};

fn per_minute() -> Policy {
    policy("api", [Limit::new("tries", Quota::per_minute(3))])
}

#[tokio::test]
async fn admitted_and_denied_responses_tell_limit_what_is_left_and_when_it_is_back() {
    let mut client = Client::of(per_minute());
    let now = second(client.clock.now());
    for (remaining, reset) in [(2, 20), (1, 40), (0, 20)] {
        let response = client.send().await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(x_fields(&response), [Some(3), Some(remaining), Some(now + reset)]);
    }
    client.clock.advance(secs(5));
    for _ in 0..3 {
        let response = client.send().await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(x_fields(&response), [Some(3), Some(0), Some(now + 20)]);
    }
}

#[tokio::test]
async fn reset_in_seconds_from_now_counts_down() {
    let mut client = Client::with(per_minute(), |layer| layer.reset(ResetFormat::DeltaSeconds));
    let mut resets = Vec::new();
    for _ in 0..5 {
        resets.push(x_fields(&client.send().await)[2]);
        client.clock.advance(Duration::from_micros(1_500_000));
    }
    // 20 s for each unit: full in 20, in 20 + 18.5; then empty, and the next in 20 - 3, 15.5, 14.
    assert_eq!(resets, [20, 39, 17, 16, 14].map(Some));
}

#[tokio::test]
async fn the_limit_is_the_burst_where_that_is_not_the_quantity() {
    let cases = [(Quota::per_minute(60).burst(5), 5), (Quota::per_minute(2).burst(600), 600)];
    for (quota, burst) in cases {
        let mut client = Client::of(policy("api", [Limit::new("tries", quota)]));
        let [limit, remaining, _] = x_fields(&client.send().await);
        assert_eq!([limit, remaining], [Some(burst), Some(burst - 1)]);
        assert_eq!(1 + client.exhaust().await.0, burst);
    }
}

/// A client, and one that only looks at the same bucket.
fn watched(quota: Quota, limiter: &Limiter) -> (Client, Client) {
    let limit = Limit::new("tries", quota).scope("shared");
    let build = |name: &'static str, limit| Policy::new(name).limit(Global, limit).build().unwrap();
    let looks = build("looks", limit.clone().cost(0));
    (Client::sharing(limiter, build("takes", limit)), Client::sharing(limiter, looks))
}

#[tokio::test]
async fn reset_does_not_wobble_while_nothing_is_charged() {
    let quotas = [
        Quota::per_second(3),
        Quota::per_second(333_333).burst(1_000_000),
        Quota::per_minute(7),
        Quota::per_hour(11).burst(5),
        Quota::per_day(1_001).burst(13),
    ];
    for quota in quotas {
        for taken in [1, quota.capacity().min(5)] {
            let (limiter, clock) = limiter();
            clock.advance(Duration::from_micros(123_457));
            let (mut takes, mut looks) = watched(quota, &limiter);
            for _ in 0..taken {
                takes.send().await;
            }
            let [_, first, reset] = x_fields(&looks.send().await);
            let mut looked = 0;
            for _ in 0..1_000 {
                let response = looks.send().await;
                let [_, remaining, now] = x_fields(&response);
                if (first == Some(0)) != (remaining == Some(0))
                    || remaining == Some(quota.capacity())
                {
                    break;
                }
                assert_eq!(now, reset, "{quota} after {taken}, look {looked}");
                looked += 1;
                clock.advance(Duration::from_micros(
                    1 + u64::from(quota.period() > secs(1)) * 7_919,
                ));
            }
            assert!(looked > 2, "{quota} after {taken}: only {looked} looks");
        }
    }
}

#[tokio::test]
async fn a_look_at_a_full_bucket_is_never_a_reset_in_the_past() {
    let (limiter, clock) = limiter();
    let (_, mut looks) = watched(Quota::per_minute(7), &limiter);
    for micros in [0, 1, 499_999, 999_999, 1_000_000] {
        clock.advance(Duration::from_micros(micros));
        let [limit, remaining, reset] = x_fields(&looks.send().await);
        assert_eq!([limit, remaining], [Some(7); 2]);
        let reset = reset.unwrap() * 1_000_000;
        let now = clock.now().as_micros();
        assert!((now..now + 1_000_000).contains(&reset), "{reset} at {now}");
    }
}

#[tokio::test]
async fn a_look_charges_nothing_and_passes_when_nothing_is_left() {
    let (limiter, clock) = limiter();
    let (mut takes, mut looks) = watched(Quota::per_minute(3), &limiter);
    let now = second(clock.now());
    for _ in 0..100 {
        assert_eq!(x_fields(&looks.send().await), [Some(3), Some(3), Some(now)]);
    }
    assert_eq!(takes.exhaust().await.0, 3);
    let response = looks.send().await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(x_fields(&response), [Some(3), Some(0), Some(now + 20)]);
}
