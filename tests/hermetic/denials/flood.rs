//! Keys that nobody has seen before, all of them denied.

use tollgate::{Limit, Quota};

use super::World;

const FLOOD: u64 = 200_000;
/// As many are remembered at most.
const CAP: u64 = 16 * 1_024;

fn key(number: u64) -> String {
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A limit that denies every request, so that the store keeps nothing.
fn dear() -> Limit {
    Limit::new("dear", Quota::per_day(1)).cost(2)
}

async fn flood(world: &World) {
    for number in 0..FLOOD {
        let decision = world.limiter.check(&dear(), key(number)).await.unwrap();
        assert!(!decision.is_allowed());
    }
    assert_eq!(world.store.asked(), FLOOD);
}

#[tokio::test]
async fn no_more_are_remembered_than_there_may_be() {
    let world = World::new();
    flood(&world).await;
    // What is remembered is denied, and nothing more is learned.
    world.store.down(true);
    let mut remembered = 0;
    for number in 0..FLOOD {
        remembered += u64::from(world.limiter.check(&dear(), key(number)).await.is_ok());
    }
    assert!((CAP / 32..=CAP).contains(&remembered), "{remembered} are remembered");
}

#[tokio::test]
async fn a_key_that_comes_during_a_flood_is_remembered_all_the_same() {
    let world = World::new();
    let limit = Limit::new("l", Quota::per_day(1));
    world.exhaust(&limit).await;
    let mut asked = 0;
    for number in 0..FLOOD / 4 {
        world.limiter.check(&dear(), key(number)).await.unwrap();
        asked += u64::from(world.check(&limit).await.1);
    }
    assert!(asked < 20, "{asked} times");
}

#[tokio::test]
async fn what_is_over_makes_room_first() {
    let world = World::new();
    let limit = Limit::new("l", Quota::per_day(1));
    for number in 0..CAP * 2 / 3 {
        world.limiter.check(&dear(), key(number)).await.unwrap();
    }
    world.clock.advance(std::time::Duration::from_millis(600));
    world.exhaust(&limit).await;
    world.clock.advance(std::time::Duration::from_millis(600));
    for number in CAP..CAP + CAP / 2 {
        world.limiter.check(&dear(), key(number)).await.unwrap();
    }
    assert!(!world.check(&limit).await.1);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded() {
    crate::memory::alone("denials::flood::memory_is_bounded", || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let world = World::new();
        let before = crate::memory::resident();
        runtime.block_on(flood(&world));
        let grown = crate::memory::resident().saturating_sub(before);
        // All of them would take 60 MB.
        assert!(grown < 16, "{grown} MB more than before");
    });
}
