//! Denials that count towards a lock are the store's, and the lock is remembered.

use std::time::Duration;

use http::StatusCode;
use tollgate::{Decision, Key, Limit, Limiter, Lockout, Quota};

use super::{MICRO, World};
use crate::support::secs;

fn tries(name: &'static str, units: u64, after: u64) -> Limit {
    let lockout = Lockout::new(secs(600)).after(after).status(StatusCode::FORBIDDEN);
    Limit::new(name, Quota::per_minute(units)).lockout(lockout)
}

#[tokio::test]
async fn each_denial_is_counted_until_the_last_locks_and_the_lock_is_remembered() {
    for after in [1, 2, 5] {
        let world = World::with(|limiter| limiter.remember_denials(secs(1_000)));
        let limit = tries("tries", 2, after);
        assert!(world.check(&limit).await.0.is_allowed());
        assert!(world.check(&limit).await.0.is_allowed());
        for denials in 1..=after {
            let (decision, asked) = world.check(&limit).await;
            assert!(asked, "denial {denials} of {after}");
            assert_eq!(decision.is_locked(), denials == after);
        }
        for left in (5..600).rev().step_by(7) {
            world.clock.advance(secs(7).min(secs(600 - left)));
            let (decision, asked) = world.check(&limit).await;
            assert!(!asked);
            let truth = world.truth(&limit).await;
            assert_eq!(decision.status(), StatusCode::FORBIDDEN);
            assert!(decision.is_locked());
            assert_eq!(decision.retry_after(), truth.retry_after());
            assert_eq!(decision.verdicts()[0].locked(), truth.verdicts()[0].locked());
            assert_eq!(decision.remaining(), Some(0));
        }
        let left = world.check(&limit).await.0.retry_after().unwrap();
        world.clock.advance(left - MICRO);
        assert!(!world.check(&limit).await.1);
        world.clock.advance(MICRO);
        let (decision, asked) = world.check(&limit).await;
        assert_eq!((decision.is_allowed(), asked), (true, true), "after the lock");
    }
}

#[tokio::test]
async fn a_limit_without_a_lock_beside_one_with_a_lock_is_asked_about() {
    let world = World::new();
    let (plain, guarded) = (Limit::new("plain", Quota::per_minute(1)), tries("tries", 9, 1));
    let both = async || -> Decision {
        let pairs = [(&plain, Key::from("user")), (&guarded, Key::from("user"))];
        world.limiter.check_all(pairs).await.unwrap()
    };
    assert!(both().await.is_allowed());
    world.store.asked();
    for _ in 0..5 {
        assert!(!both().await.is_allowed());
        assert_eq!(world.store.asked(), 1);
    }
}

#[tokio::test]
async fn a_lock_that_is_reset_is_gone_here_too() {
    let world = World::new();
    let limit = tries("tries", 1, 1);
    world.exhaust(&limit).await;
    assert!(!world.check(&limit).await.1);
    world.limiter.reset(&limit, "user").await.unwrap();
    let (decision, asked) = world.check(&limit).await;
    assert_eq!((decision.is_allowed(), asked), (true, true));
}

/// Two limits with locks on one key, by limiters of both kinds: what one lock hides from the store
/// is not missing from the other.
#[tokio::test]
async fn locks_stand_as_if_the_store_had_made_every_denial() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let worlds = [World::new(), World::new()];
        let limits = [tries("few", 2, rng.u64(1..=3)), tries("many", 3, rng.u64(1..=4))];
        let mut cached = 0;
        for step in 0..150 {
            let pause = match rng.u8(..4) {
                0 => Duration::from_micros(rng.u64(..30_000_000)),
                _ => Duration::from_micros(rng.u64(..100_000)),
            };
            let costs = [rng.u64(..3), rng.u64(..3)];
            let mut seen = Vec::new();
            for (world, limiter) in
                [(&worlds[0], &worlds[0].limiter), (&worlds[1], &worlds[1].asking)]
            {
                world.clock.advance(pause);
                let decision = charge(limiter, &limits, costs).await;
                seen.push((decision.outcome(), decision.status(), decision.retry_after()));
                if decision.source() == tollgate::Source::Cache {
                    cached += 1;
                }
            }
            assert_eq!(seen[0], seen[1], "seed {seed}, step {step}, {costs:?}");
        }
        for limit in &limits {
            let locked = async |world: &World| {
                let look = world.asking.look(limit, "user").await.unwrap();
                (look.verdicts()[0].locked(), look.remaining())
            };
            assert_eq!(locked(&worlds[0]).await, locked(&worlds[1]).await, "seed {seed}");
        }
        assert!(cached > 5, "only {cached}, seed {seed}");
    }
}

async fn charge(limiter: &Limiter, limits: &[Limit; 2], costs: [u64; 2]) -> Decision {
    let limits = [0, 1].map(|at| limits[at].clone().cost(costs[at]));
    let pairs = limits.iter().map(|limit| (limit, Key::from("user")));
    limiter.check_all(pairs).await.unwrap()
}

#[tokio::test]
async fn a_lock_holds_for_a_second_while_the_store_is_down() {
    let world = World::new();
    let limit = tries("tries", 1, 1);
    world.exhaust(&limit).await;
    world.store.down(true);
    for _ in 0..3 {
        assert!(world.check(&limit).await.0.is_locked());
        world.clock.advance(Duration::from_millis(300));
    }
    world.clock.advance(Duration::from_millis(100));
    world.limiter.check(&limit, "user").await.unwrap_err();
}
