//! For how long what was denied is remembered.

use std::time::Duration;

use tollgate::{Limit, Quota};

use super::{MICRO, World, limits};
use crate::support::secs;

#[tokio::test]
async fn time_counts_from_when_the_store_was_asked() {
    let millis = Duration::from_millis;
    for limit in limits() {
        let world = World::with(|limiter| limiter.remember_denials(secs(1_000_000)));
        let all = limit.clone().cost(5);
        world.check(&all).await;
        world.store.travel([millis(400), millis(700)]);
        let wait = world.check(&all).await.0.retry_after().unwrap();
        world.clock.advance(wait - millis(1_100) - MICRO);
        let (decision, asked) = world.check(&all).await;
        // It is told as if the answer had not travelled.
        assert_eq!((decision.retry_after(), asked), (Some(millis(1_100) + MICRO), false));
        // By then the store would deny it for as long as the request travelled.
        world.store.travel([Duration::ZERO; 2]);
        assert_eq!(world.truth(&all).await.retry_after(), Some(millis(400) + MICRO));
        world.clock.advance(MICRO);
        let (decision, asked) = world.check(&all).await;
        assert_eq!((decision.retry_after(), asked), (Some(millis(400)), true));
    }
}

#[tokio::test]
async fn after_a_second_the_store_is_asked_again() {
    assert_asked_after(World::new(), secs(1)).await;
}

#[tokio::test]
async fn it_can_be_for_longer_or_for_less_long() {
    for longest in [MICRO * 2, Duration::from_millis(7), secs(5), secs(3_600)] {
        let world = World::with(|limiter| limiter.remember_denials(longest));
        assert_asked_after(world, longest).await;
    }
}

/// That the store is asked again when this has passed since it was asked, not before, and however
/// often somebody comes meanwhile.
async fn assert_asked_after(world: World, longest: Duration) {
    let limit = Limit::new("l", Quota::per_day(1));
    world.exhaust(&limit).await;
    for _ in 0..3 {
        world.clock.advance(longest / 2);
        assert!(!world.check(&limit).await.1, "{longest:?}");
        world.clock.advance(longest - longest / 2 - MICRO);
        assert!(!world.check(&limit).await.1, "{longest:?}");
        world.clock.advance(MICRO);
        assert!(world.check(&limit).await.1, "{longest:?}");
        assert!(!world.check(&limit).await.1, "{longest:?}");
    }
}

#[tokio::test]
async fn for_no_time_it_is_not_remembered() {
    for limit in limits() {
        let world = World::with(|limiter| limiter.remember_denials(Duration::ZERO));
        world.exhaust(&limit).await;
        for _ in 0..5 {
            assert!(world.check(&limit).await.1);
        }
    }
}

#[tokio::test]
async fn the_age_counts_from_when_the_store_was_asked() {
    let world = World::new();
    let limit = Limit::new("l", Quota::per_day(1));
    world.check(&limit).await;
    world.store.travel([Duration::from_millis(300), Duration::from_millis(300)]);
    world.check(&limit).await;
    world.clock.advance(Duration::from_millis(400) - MICRO);
    assert!(!world.check(&limit).await.1);
    world.clock.advance(MICRO);
    assert!(world.check(&limit).await.1);
    // An answer that took longer than it counts for is never remembered.
    world.store.travel([secs(1), Duration::ZERO]);
    world.clock.advance(secs(1));
    for _ in 0..3 {
        assert!(world.check(&limit).await.1);
    }
}

#[tokio::test]
async fn a_clock_that_steps_back_changes_no_more_than_what_is_asked() {
    for limit in limits() {
        let world = World::new();
        world.exhaust(&limit).await;
        let now = tollgate::Clock::now(&world.clock).as_micros();
        world.clock.set(tollgate::Timestamp::from_micros(now - 500_000_000));
        // As if no time had passed.
        let (decision, asked) = world.check(&limit).await;
        assert_eq!((decision.is_allowed(), asked), (false, false));
        world.clock.advance(secs(502));
        assert!(world.check(&limit).await.1, "{:?}", limit.counts_by());
    }
}
