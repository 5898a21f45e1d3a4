//! What operators see of it.

use std::time::Duration;

use http::StatusCode;
use tollgate::{Decision, Limit, OnFailure, Policy, Quota, Source};
use tracing::Level;

use super::World;
use crate::support::{Client, Log, secs};

fn api(on_failure: OnFailure) -> Policy {
    let limit = Limit::new("tries", Quota::per_day(2));
    Policy::new("api").limit(tollgate::Global, limit).on_failure(on_failure).build().unwrap()
}

const ALL: [OnFailure; 3] = [OnFailure::Allow, OnFailure::Deny, OnFailure::Local { share: 0.5 }];

#[tokio::test]
async fn a_key_that_was_denied_is_denied_while_the_store_is_down() {
    for on_failure in ALL {
        let world = World::new();
        let mut client = Client::sharing(&world.limiter, api(on_failure));
        client.exhaust().await;
        world.store.down(true);
        for _ in 0..9 {
            world.clock.advance(Duration::from_millis(100));
            let response = client.send().await;
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            let decision = response.extensions().get::<Decision>().unwrap();
            assert_eq!(decision.source(), Source::Cache);
        }
        world.clock.advance(Duration::from_millis(100));
        let status = client.send().await.status();
        let expected = match on_failure {
            OnFailure::Deny => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        };
        assert_eq!(status, expected, "{on_failure:?}");
    }
}

#[tokio::test]
async fn what_is_decided_here_says_nothing_about_the_store() {
    let log = Log::start();
    let world = World::with(|limiter| limiter.remember_denials(secs(10)));
    let mut client = Client::sharing(&world.limiter, api(OnFailure::Allow));
    client.exhaust().await;
    for _ in 0..100 {
        client.send().await;
    }
    assert_eq!(log.notices(), []);
    let levels = || log.notices().into_iter().map(|(level, _)| level).collect::<Vec<_>>();
    let other = Limit::new("other", Quota::per_day(2));
    world.store.down(true);
    world.limiter.check(&other, "user").await.unwrap_err();
    assert_eq!(levels(), [Level::WARN]);
    // Nobody has heard from the store since.
    world.clock.advance(secs(2));
    assert_eq!(client.send().await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(levels(), [Level::WARN]);
    world.store.down(false);
    world.limiter.check(&other, "user").await.unwrap();
    assert_eq!(levels(), [Level::WARN, Level::INFO]);
}

#[tokio::test]
async fn the_event_of_a_decision_says_who_decided() {
    let world = World::new();
    let mut client = Client::sharing(&world.limiter, api(OnFailure::Allow));
    client.exhaust().await;
    let log = Log::start();
    client.send().await;
    let (level, text) = log.events().pop().unwrap();
    assert_eq!(level, Level::DEBUG);
    for part in ["policy=api", "limit=tries", "source=Cache", "remaining=0", "outcome=denied"] {
        assert!(text.contains(part), "{text}");
    }
}
