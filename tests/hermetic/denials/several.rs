//! Requests with several limits and keys.

use tollgate::{Algorithm, Decision, Key, Limit, Policy, Quota, Source};

use super::World;
use crate::support::{ALGORITHMS, about, decide, left, secs};

fn api(limit: Limit) -> Policy {
    Policy::new("api").limit(about(), limit).build().unwrap()
}

#[tokio::test]
async fn one_key_that_is_known_denies_all_and_costs_the_others_nothing() {
    for algorithm in ALGORITHMS {
        let world = World::new();
        let policy = api(Limit::new("l", Quota::per_minute(2)).algorithm(algorithm));
        let limit = policy.limit("l").unwrap();
        for _ in 0..2 {
            decide(&world.limiter, &policy, &["a"]).await;
        }
        assert!(!decide(&world.limiter, &policy, &["a", "b"]).await.is_allowed());
        world.store.asked();
        for keys in [&["a", "b"][..], &["b", "a"], &["c", "a"], &["a"]] {
            let denied = decide(&world.limiter, &policy, keys).await;
            let place = keys.iter().position(|key| *key == "a").unwrap();
            assert_eq!(denied.source(), Source::Cache, "{keys:?}");
            assert_eq!(denied.binding().unwrap().key_index(), place);
            let left = denied.verdicts().iter().map(|verdict| verdict.standing().remaining());
            let expected = keys.iter().map(|key| if *key == "a" { 0 } else { 2 });
            assert!(left.eq(expected), "{keys:?}");
        }
        assert_eq!(world.store.asked(), 0);
        for key in ["b", "c"] {
            assert_eq!(left(&world.limiter, limit, key).await, 2);
        }
        assert!(decide(&world.limiter, &policy, &["b", "c"]).await.is_allowed());
    }
}

#[tokio::test]
async fn who_comes_with_a_new_key_each_time_is_not_asked_about() {
    let world = World::new();
    let policy = api(Limit::new("l", Quota::per_day(1)));
    decide(&world.limiter, &policy, &["address"]).await;
    decide(&world.limiter, &policy, &["address"]).await;
    world.store.asked();
    for number in 0..1_000 {
        let denied = decide(&world.limiter, &policy, &["address", &number.to_string()]).await;
        assert!(!denied.is_allowed());
    }
    assert_eq!(world.store.asked(), 0);
}

/// Three limits, of which the last denies first.
fn three() -> [Limit; 3] {
    [
        Limit::new("log", Quota::per_hour(100)).algorithm(Algorithm::SlidingLog),
        Limit::new("day", Quota::per_day(50)).algorithm(Algorithm::FixedWindow),
        Limit::new("burst", Quota::per_minute(3)),
    ]
}

async fn charge(world: &World, limits: &[Limit]) -> Decision {
    let pairs = limits.iter().map(|limit| (limit, Key::from("user")));
    world.limiter.check_all(pairs).await.unwrap()
}

#[tokio::test]
async fn the_limits_that_do_not_deny_stand_as_they_did() {
    let world = World::new();
    let limits = three();
    while charge(&world, &limits).await.is_allowed() {}
    world.store.asked();
    for _ in 0..4 {
        world.clock.advance(secs(1) / 5);
        let denied = charge(&world, &limits).await;
        assert_eq!(denied.source(), Source::Cache);
        assert_eq!(denied.binding().unwrap().name(), "burst");
        let left = denied.verdicts().iter().map(|verdict| verdict.standing().remaining());
        assert!(left.eq([97, 47, 0]));
    }
    assert_eq!(world.store.asked(), 0);
}

#[tokio::test]
async fn the_wait_is_that_of_the_limit_that_frees_last() {
    let world = World::new();
    let limits = [Limit::new("short", Quota::per_minute(1)), Limit::new("long", Quota::per_day(1))];
    charge(&world, &limits).await;
    for _ in 0..2 {
        let denied = charge(&world, &limits).await;
        assert_eq!(denied.retry_after(), Some(secs(86_400)));
        assert_eq!(denied.binding().unwrap().name(), "long");
    }
}

#[tokio::test]
async fn where_the_cost_at_a_log_is_another_the_store_is_asked() {
    let world = World::new();
    let [log, day, burst] = three();
    let with = |cost| [log.clone().cost(cost), day.clone(), burst.clone()];
    while charge(&world, &with(1)).await.is_allowed() {}
    world.store.asked();
    charge(&world, &with(1)).await;
    assert_eq!(world.store.asked(), 0);
    charge(&world, &with(2)).await;
    assert_eq!(world.store.asked(), 1);
    charge(&world, &with(2)).await;
    assert_eq!(world.store.asked(), 0);
}

#[tokio::test]
async fn a_shadow_denies_nothing_and_is_seen_as_the_store_sees_it() {
    for algorithm in ALGORITHMS {
        let world = World::new();
        let shadow = Limit::new("shadow", Quota::per_day(1)).algorithm(algorithm).shadow();
        let limits = [shadow.clone(), Limit::new("enforced", Quota::per_day(3))];
        for _ in 0..3 {
            let decision = charge(&world, &limits).await;
            assert_eq!((decision.is_allowed(), decision.source()), (true, Source::Other));
        }
        let there = charge(&world, &limits).await;
        let here = charge(&world, &limits).await;
        assert_eq!(here.source(), Source::Cache);
        for denied in [there, here] {
            assert_eq!(denied.binding().unwrap().name(), "enforced");
            let fits = denied.verdicts().iter().map(|verdict| verdict.standing().fits());
            assert!(fits.eq([false, false]), "{algorithm:?}");
        }
        // It is known now that the shadow is exhausted, and it still denies nothing.
        for _ in 0..3 {
            let decision = charge(&world, std::slice::from_ref(&shadow)).await;
            assert_eq!((decision.is_allowed(), decision.source()), (true, Source::Other));
        }
    }
}

#[tokio::test]
async fn a_limit_that_was_a_shadow_is_enforced_by_the_same_state() {
    let world = World::new();
    let limit = Limit::new("l", Quota::per_day(1));
    let limits = [limit.clone().shadow(), Limit::new("enforced", Quota::per_day(1))];
    charge(&world, &limits).await;
    charge(&world, &limits).await;
    let truth = world.truth(&limit).await;
    let (decision, asked) = world.check(&limit).await;
    assert_eq!((decision.is_allowed(), asked), (false, false));
    assert_eq!(decision.retry_after(), truth.retry_after());
}
