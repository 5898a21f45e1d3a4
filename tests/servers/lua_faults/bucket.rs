//! Algorithms, as far as they are a bucket.

use std::time::Duration;

use tollgate::{Limit, Quota};

use super::{START, asking, charge, charge_at, kept, left, redis};
use crate::{script::Joined, support::RedisServer};

/// So slow that nothing comes back during a test.
const SLOW: Quota = Quota::per_day(10);
const UNIT: Duration = Duration::from_secs(8_640);

#[tokio::test]
async fn a_denied_request_takes_nothing() {
    let (server, store) = redis().await;
    assert!(charge(&store, "k", SLOW, 7).await.fits());
    let before = kept(&server, "k");
    for _ in 0..100 {
        let denied = charge(&store, "k", SLOW, 4).await;
        assert_eq!((denied.fits(), denied.remaining()), (false, 3));
        assert_eq!(kept(&server, "k"), before);
    }
    assert!(charge(&store, "k", SLOW, 3).await.fits());
}

#[tokio::test]
async fn a_denied_first_request_leaves_no_key() {
    let (server, store) = redis().await;
    assert!(!charge(&store, "k", SLOW, 11).await.fits());
    assert_eq!(left(&server, "k"), -2);
}

#[tokio::test]
async fn a_cost_of_the_whole_burst_passes_on_a_full_bucket() {
    let (_server, store) = redis().await;
    let fast = Quota::per_second(1_000_000_000);
    let deep = Quota::per_day(1 << 40);
    for quota in [SLOW, Quota::per_second(3), Quota::per_minute(7), fast, deep, SLOW.burst(1)] {
        let key = quota.to_string();
        assert_eq!(charge(&store, &key, quota, 0).await.remaining(), quota.capacity());
        let all = charge(&store, &key, quota, quota.capacity()).await;
        assert_eq!((all.fits(), all.remaining()), (true, 0), "{key}");
    }
}

#[tokio::test]
async fn a_cost_of_0_looks_and_writes_nothing() {
    let (server, store) = redis().await;
    let look = charge(&store, "k", SLOW, 0).await;
    assert_eq!((look.fits(), look.remaining(), look.reset()), (true, 10, Duration::ZERO));
    assert_eq!(look.wait(), Some(Duration::ZERO));
    assert_eq!(left(&server, "k"), -2, "no key for who only looks");

    charge(&store, "k", SLOW, 10).await;
    let before = kept(&server, "k");
    let look = charge(&store, "k", SLOW, 0).await;
    assert_eq!((look.fits(), look.remaining()), (true, 0));
    assert!(look.wait().is_some_and(|wait| wait <= UNIT && wait > UNIT - UNIT / 100));
    assert_eq!(kept(&server, "k"), before);
}

#[tokio::test]
async fn a_cost_above_the_burst_is_never_told_to_wait() {
    let (server, store) = redis().await;
    let limiter = asking(store);
    for cost in [11, 12, u64::MAX] {
        let limit = Limit::new("big", SLOW).cost(cost);
        for _ in 0..2 {
            let decision = limiter.check(&limit, "somebody").await.unwrap();
            assert!(!decision.is_allowed(), "{cost}");
            assert_eq!(decision.retry_after(), None, "{cost}");
            assert_eq!(decision.remaining(), Some(10), "{cost}");
        }
    }
    assert_eq!(server.command(&["DBSIZE"]), "0");
}

#[tokio::test]
async fn the_wait_is_for_the_cost_that_was_asked_not_for_one_unit() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    assert!(charge_at(&mut lua, START, "k", SLOW, 8).fits());
    for cost in 3..=10 {
        let wait = charge_at(&mut lua, START, "k", SLOW, cost).wait();
        assert_eq!(wait, Some(UNIT * (u32::try_from(cost).unwrap() - 2)), "{cost}");
    }
}

#[tokio::test]
async fn remaining_is_never_above_the_burst() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let mut now = START;
    for _ in 0..2_000 {
        now = match fastrand::u8(..3) {
            0 => now + fastrand::u64(..1_000_000_000_000),
            1 => now - fastrand::u64(..1_000_000_000_000),
            _ => now,
        };
        let standing = charge_at(&mut lua, now, "k", SLOW, fastrand::u64(..3));
        assert!(standing.remaining() <= 10);
        assert!(standing.reset() <= UNIT * 10);
    }
}
