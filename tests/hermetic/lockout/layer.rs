//! What clients are told while their key is locked.

use http::StatusCode;
use http_body_util::BodyExt;
use tollgate::{
    Decision, Global, Key, Limit, Limiter, Lockout, OnFailure, Policy, Quota, RateLimitLayer,
    Rejection, ResetFormat, Source, StoreErrorKind, respond,
};
use tower::Layer;

use super::tries;
use crate::support::{
    Broken, Client, Flaky, Later, Probe, field, limiters, memory, number, policy, secs, send,
    x_fields,
};

fn forbidding(after: u64) -> Limit {
    let lockout = Lockout::new(secs(600)).after(after).status(StatusCode::FORBIDDEN);
    tries(after).lockout(lockout)
}

#[tokio::test]
async fn a_locked_key_is_answered_by_a_status_of_its_own_and_a_denied_one_by_429() {
    for (limiter, clock) in limiters() {
        let mut client = Client::sharing(&limiter, policy("login", [forbidding(2)]));
        let mut statuses = Vec::new();
        for _ in 0..6 {
            statuses.push(client.send().await.status().as_u16());
        }
        assert_eq!(statuses, [200, 200, 429, 403, 403, 403]);
        assert_eq!(client.service.get_ref().calls(), 2);
        clock.advance(secs(600));
        assert_eq!(client.send().await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn without_a_status_of_its_own_it_is_429_too() {
    let mut client = Client::of(policy("login", [tries(1)]));
    assert_eq!(client.exhaust().await.1.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(client.send().await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn retry_after_and_reset_agree_on_the_end_of_the_lock_and_nothing_remains() {
    for format in [ResetFormat::EpochSeconds, ResetFormat::DeltaSeconds] {
        let mut client =
            Client::with(policy("login", [forbidding(1)]), |layer| layer.reset(format));
        client.exhaust().await;
        for waited in [0, 30, 59, 61, 500] {
            let mut waiting =
                Client { service: client.service.clone(), clock: client.clock.clone() };
            waiting.clock.advance(secs(waited));
            let response = waiting.send().await;
            assert_eq!(response.status(), StatusCode::FORBIDDEN);
            let left = number(&response, "retry-after").unwrap();
            let decision: &Decision = response.extensions().get().unwrap();
            assert!(decision.is_locked());
            let now = match format {
                ResetFormat::EpochSeconds => decision.now().as_secs_ceil(),
                _ => 0,
            };
            assert_eq!(x_fields(&response), [Some(2), Some(0), Some(now + left)]);
            let state = format!(r#""tries";r=0;t={left}"#);
            assert_eq!(field(response.headers(), "ratelimit"), Some(&*state));
            assert_eq!(field(response.headers(), "cache-control"), Some("no-store"));
            waiting.clock.set(tollgate::Timestamp::from_micros(
                decision.now().as_micros() - waited * 1_000_000,
            ));
        }
    }
}

#[tokio::test]
async fn one_who_waits_as_told_is_admitted() {
    for (limiter, clock) in limiters() {
        let mut client = Client::sharing(&limiter, policy("login", [forbidding(1)]));
        client.exhaust().await;
        clock.advance(std::time::Duration::from_micros(1_234_567));
        let wait = number(&client.send().await, "retry-after").unwrap();
        assert_eq!(wait, 599);
        clock.advance(secs(wait));
        assert_eq!(client.send().await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn the_answer_says_that_the_key_is_locked() {
    let (limiter, _clock) = crate::support::limiter();
    let layer = RateLimitLayer::with_policy(policy("login", [forbidding(2)]), &limiter);
    let body = async |layer: &RateLimitLayer| {
        let response = send(&mut layer.layer(Probe::new())).await;
        response.into_body().collect().await.unwrap().to_bytes()
    };
    for _ in 0..2 {
        body(&layer).await;
    }
    assert_eq!(body(&layer).await, "too many requests");
    assert_eq!(body(&layer).await, "locked after too many requests");
    let document = body(&layer.respond(respond::Problem)).await;
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(document["status"], 403);
    assert_eq!(document["title"], "locked after too many requests");
    assert_eq!(document["violated-policies"], serde_json::json!(["tries"]));
}

#[tokio::test]
async fn an_answer_of_ones_own_can_tell_a_lock_from_a_denial() {
    let own = respond::from_fn(|rejection, _| {
        let Rejection::Limited(decision) = rejection else { panic!("{rejection:?}") };
        let left = decision.binding().and_then(tollgate::Verdict::locked);
        http::Response::new(format!("{} {left:?} {}", decision.is_locked(), decision.status()))
    });
    let mut client = Client::with(policy("login", [forbidding(2)]), |layer| layer.respond(own));
    let mut bodies = Vec::new();
    for _ in 0..4 {
        bodies.push(client.send().await.into_body().collect().await.unwrap().to_bytes());
    }
    assert_eq!(bodies[2], "false None 429 Too Many Requests");
    assert_eq!(bodies[3], "true Some(600s) 403 Forbidden");
}

#[tokio::test]
async fn where_another_limit_denies_for_longer_the_answer_is_about_that_one() {
    for (limiter, clock) in limiters() {
        let daily = Limit::new("daily", Quota::per_day(2));
        let mut client = Client::sharing(&limiter, policy("login", [forbidding(1), daily]));
        let (_, response) = client.exhaust().await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(number(&response, "retry-after"), Some(43_200));
        let state = field(response.headers(), "ratelimit").unwrap();
        assert_eq!(state, r#""tries";r=0;t=600, "daily";r=0;t=43200"#);
        let decision: &Decision = response.extensions().get().unwrap();
        assert!(decision.is_locked() && decision.binding().unwrap().locked().is_none());
        assert_eq!(decision.wait(), Some(secs(43_200)));
        clock.advance(secs(600));
        assert_eq!(client.send().await.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn a_layer_around_the_router_and_the_route_counts_a_denial_once() {
    for (limiter, _clock) in limiters() {
        let layer = RateLimitLayer::with_policy(policy("login", [forbidding(2)]), &limiter);
        let mut service = layer.layer(layer.layer(Probe::new()));
        let mut statuses = Vec::new();
        for _ in 0..5 {
            statuses.push(send(&mut service).await.status().as_u16());
        }
        assert_eq!(statuses, [200, 200, 429, 403, 403]);
    }
}

#[tokio::test]
async fn an_operator_lifts_it_by_the_limit_of_the_policy() {
    for (limiter, _clock) in limiters() {
        let policy = policy("login", [forbidding(1)]);
        let mut client = Client::sharing(&limiter, policy.clone());
        client.exhaust().await;
        let (limit, key) = (policy.limit("tries").unwrap(), Key::new("global", "all"));
        let look = limiter.look(limit, key.clone()).await.unwrap();
        assert_eq!(look.verdicts()[0].locked(), Some(secs(600)));
        limiter.reset(limit, key).await.unwrap();
        assert_eq!(client.send().await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn what_this_instance_decides_alone_locks_too() {
    for broken in [
        Broken::Now(StoreErrorKind::Unreachable),
        Broken::Later(StoreErrorKind::Timeout),
        Broken::Miscounts(1),
        Broken::Miscounts(3),
    ] {
        let (store, clock) = memory();
        let fallback = tollgate::MemoryStore::builder().clock(clock.clone()).build();
        let limiter = Limiter::builder(Flaky::broken(store, broken)).fallback(fallback).build();
        let policy = Policy::new("login").limit(Global, forbidding(2));
        let policy = policy.on_failure(OnFailure::Local { share: 0.5 }).build().unwrap();
        let mut client = Client::sharing(&limiter, policy);
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(client.send().await.status().as_u16());
        }
        assert_eq!(statuses, [200, 429, 403, 403], "{broken:?}");
        let response = client.send().await;
        let decision: &Decision = response.extensions().get().unwrap();
        assert_eq!(decision.source(), Source::Fallback);
        assert_eq!(number(&response, "retry-after"), Some(600));
        clock.advance(secs(600));
        assert_eq!(client.send().await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_reset_lifts_what_this_instance_locked_alone() {
    let broken = Broken::Now(StoreErrorKind::Unreachable);
    let limiter = Limiter::new(Flaky::broken(memory().0, broken));
    let policy = Policy::new("login").limit(Global, forbidding(1));
    let policy = policy.on_failure(OnFailure::Local { share: 1.0 }).build().unwrap();
    let mut client = Client::sharing(&limiter, policy.clone());
    client.exhaust().await;
    assert_eq!(client.send().await.status(), StatusCode::FORBIDDEN);
    let limit = policy.limits().next().unwrap();
    // The store is still down, and the caller hears of it.
    limiter.reset(limit, Key::new("global", "all")).await.unwrap_err();
    assert_eq!(client.send().await.status(), StatusCode::OK);
}

#[tokio::test]
async fn policies_share_a_lock_only_if_both_share_the_limit() {
    for (shared, status) in [(true, StatusCode::FORBIDDEN), (false, StatusCode::OK)] {
        let limiter = Limiter::new(Later(memory().0));
        let limit = || if shared { forbidding(1).scope("accounts") } else { forbidding(1) };
        Client::sharing(&limiter, policy("a", [limit()])).exhaust().await;
        let response = Client::sharing(&limiter, policy("b", [limit()])).send().await;
        assert_eq!(response.status(), status);
    }
}
