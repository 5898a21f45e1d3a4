//! The answer is the one that the store would give.

use std::time::Duration;

use http::HeaderMap;
use tollgate::{Algorithm, Limit, Limiter, Outcome, Quota, Source};

use super::{MICRO, World, limits};
use crate::support::{ALGORITHMS, Client, policy, secs};

fn of(units: u64) -> Limit {
    Limit::new("l", Quota::per_minute(units))
}

#[tokio::test]
async fn a_denied_key_is_denied_again_without_asking_and_as_the_store_would() {
    for limit in limits() {
        let world = World::new();
        world.exhaust(&limit).await;
        for _ in 0..200 {
            world.clock.advance(Duration::from_micros(fastrand::u64(..4_990)));
            let (decision, asked) = world.check(&limit).await;
            assert!(!asked, "{:?}", limit.counts_by());
            let truth = world.truth(&limit).await;
            assert_eq!(decision.outcome(), Outcome::Denied);
            assert_eq!(decision.now(), truth.now());
            assert_eq!(decision.retry_after(), truth.retry_after(), "{:?}", limit.counts_by());
            let standing = |decision: &tollgate::Decision| decision.verdicts()[0].standing();
            let (here, there) = (standing(&decision), standing(&truth));
            assert_eq!((here.fits(), here.wait()), (there.fits(), there.wait()));
            assert_eq!((here.remaining(), here.reset()), (there.remaining(), there.reset()));
        }
    }
}

#[tokio::test]
async fn clients_are_told_the_same() {
    for limit in limits() {
        let world = World::new();
        let client = |limiter: &Limiter| Client::sharing(limiter, policy("api", [limit.clone()]));
        let (mut client, mut other) = (client(&world.limiter), client(&world.asking));
        client.exhaust().await;
        for _ in 0..3 {
            world.store.asked();
            world.clock.advance(Duration::from_millis(fastrand::u64(..333)));
            let response = client.send().await;
            assert_eq!(world.store.asked(), 0);
            let told: HeaderMap = response.headers().clone();
            let expected = other.send().await;
            assert_eq!((response.status(), &told), (expected.status(), expected.headers()));
            assert!(told.contains_key("retry-after") && told.contains_key("ratelimit"));
            let decision = response.extensions().get::<tollgate::Decision>().unwrap();
            assert_eq!(decision.source(), Source::Cache);
        }
    }
}

#[tokio::test]
async fn it_is_admitted_when_the_store_would_and_not_later() {
    for limit in limits() {
        let world = World::with(|limiter| limiter.remember_denials(secs(1_000_000)));
        let wait = world.exhaust(&limit).await.retry_after().unwrap();
        world.clock.advance(wait - MICRO);
        let (decision, asked) = world.check(&limit).await;
        assert_eq!((decision.retry_after(), asked), (Some(MICRO), false));
        world.clock.advance(MICRO);
        let (decision, asked) = world.check(&limit).await;
        assert_eq!((decision.is_allowed(), asked), (true, true), "{:?}", limit.counts_by());
    }
}

#[tokio::test]
async fn other_costs_are_decided_by_what_is_known() {
    for limit in limits().filter(|limit| limit.counts_by() != Algorithm::SlidingLog) {
        let world = World::new();
        let cost = |units| limit.clone().cost(units);
        assert!(world.check(&cost(3)).await.0.is_allowed());
        assert!(!world.check(&cost(4)).await.0.is_allowed());
        for units in [4, 3, 5] {
            let (decision, asked) = world.check(&cost(units)).await;
            assert_eq!((decision.is_allowed(), asked), (false, false), "{units}");
            assert_eq!(decision.remaining(), Some(2));
            assert_eq!(decision.retry_after(), world.truth(&cost(units)).await.retry_after());
        }
        // What fits is for the store to charge.
        assert!(world.check(&cost(2)).await.0.is_allowed());
    }
}

#[tokio::test]
async fn a_cost_above_the_limit_is_denied_for_ever_and_nothing_else_is() {
    for limit in limits() {
        let world = World::new();
        let dear = limit.clone().cost(6);
        assert_eq!(world.exhaust(&dear).await.retry_after(), None);
        for _ in 0..3 {
            let (decision, asked) = world.check(&dear).await;
            assert_eq!((decision.retry_after(), asked), (None, false));
            assert_eq!(decision.remaining(), Some(5));
        }
        assert!(world.check(&limit).await.0.is_allowed(), "{:?}", limit.counts_by());
    }
}

#[tokio::test]
async fn of_a_log_only_the_same_cost_is_known() {
    let world = World::new();
    let log = of(5).algorithm(Algorithm::SlidingLog);
    world.exhaust(&log).await;
    assert!(!world.check(&log).await.1);
    for cost in [2, 3, 1] {
        let log = log.clone().cost(cost);
        assert!(world.check(&log).await.1, "{cost}");
        assert!(!world.check(&log).await.1, "{cost}");
    }
}

#[tokio::test]
async fn what_was_known_is_over_once_something_was_taken() {
    for limit in limits() {
        let world = World::new();
        let cost = |units| limit.clone().cost(units);
        assert!(world.check(&cost(2)).await.0.is_allowed());
        assert!(!world.check(&cost(4)).await.0.is_allowed());
        assert!(world.check(&cost(3)).await.0.is_allowed());
        let (decision, _) = world.check(&cost(4)).await;
        assert_eq!(decision.remaining(), Some(0), "{:?}", limit.counts_by());
        assert_eq!(decision.retry_after(), world.truth(&cost(4)).await.retry_after());
    }
}

#[tokio::test]
async fn what_is_known_of_another_quota_counts_for_nothing() {
    for algorithm in ALGORITHMS {
        for (before, after) in [(5, 50), (50, 5)] {
            let world = World::with(|limiter| limiter.remember_denials(secs(1_000)));
            let (old, new) = (of(before).algorithm(algorithm), of(after).algorithm(algorithm));
            world.exhaust(&old).await;
            // A bucket owes the same time, in which more comes back if there is more.
            world.clock.advance(secs(1) + MICRO * 300_000);
            while world.check(&old).await.0.is_allowed() {}
            assert!(!world.check(&old).await.1);
            let (decision, asked) = world.check(&new).await;
            assert_eq!((decision.is_allowed(), asked), (after > before, true), "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn looks_are_always_true() {
    for limit in limits() {
        let world = World::new();
        world.exhaust(&limit).await;
        assert!(!world.check(&limit).await.1);
        let (look, asked) = world.check(&limit.clone().cost(0)).await;
        assert_eq!((look.is_allowed(), look.remaining(), asked), (true, Some(0), true));
        // And they tell nothing that would be forgotten.
        assert!(!world.check(&limit).await.1, "{:?}", limit.counts_by());
    }
}

#[tokio::test]
async fn other_keys_and_limits_are_none_of_its_business() {
    let world = World::new();
    world.exhaust(&of(5)).await;
    let others = [
        (of(5), "another"),
        (of(5).scope("s"), "user"),
        (of(5).algorithm(Algorithm::FixedWindow), "user"),
        (Limit::new("m", Quota::per_minute(5)), "user"),
        (Limit::new("l", Quota::per_hour(5)), "user"),
    ];
    for (limit, key) in others {
        assert!(world.limiter.check(&limit, key).await.unwrap().is_allowed());
    }
    assert!(!world.check(&of(5)).await.1);
}
