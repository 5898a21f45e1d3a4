//! Numbers and time in Lua.

use std::{thread::sleep, time::Duration};

use tollgate::{Quota, Store as _, Timestamp};

use super::{START, charge, charge_at, hit, kept, redis, time};
use crate::{
    script::{Joined, Kept},
    support::RedisServer,
};

const SEC: u64 = 1_000_000;
const DAY: u64 = 86_400 * SEC;
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

#[tokio::test]
async fn times_of_more_than_14_digits_are_kept_in_full() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let unit = |micros: u64| Quota::new(1, Duration::from_micros(micros)).unwrap();
    let third = Quota::per_second(3);
    // The third is a multiple of 10^8, which some servers write as 1.7644612e+15.
    for (now, quota, state) in [
        (1_712_345_678_901_234, unit(1), "1712345678901235"),
        (1_712_345_678_901_234, unit(98_766), "1712345679000000"),
        (1_764_461_100_000_000, unit(100 * SEC), "1764461200000000"),
        (1_764_461_100_000_000, third, "1764461100333333.333334"),
        (1_764_461_100_000_000, third.burst(30), "1764461100333333.333334"),
        (3_999_999_999_999_999, Quota::new(1, TEN_YEARS).unwrap(), "4315359999999999"),
    ] {
        lua.server().command(&["DEL", "k"]);
        let hit = hit("k", quota, 1);
        let (_, written) = lua.acquire(&[vec![hit]], Timestamp::from_micros(now));
        assert_eq!(written[0].kept, Kept::Text(state.to_owned()), "{quota} at {now}");
        assert_eq!(lua.server().get(b"k").as_deref(), Some(state));
    }
}

#[tokio::test]
async fn what_the_real_server_keeps_is_its_now_and_the_cost_in_full_digits() {
    let (server, store) = redis().await;
    let quota = Quota::per_day(1);
    let now = store.acquire(&[hit("k", quota, 1)]).await.unwrap().now;
    assert_eq!(kept(&server, "k"), (now.as_micros() + DAY).to_string());
}

#[tokio::test]
async fn no_first_remaining_is_one_short() {
    let (_server, store) = redis().await;
    for quantity in 1..=600 {
        for secs in [1, 7, 60] {
            let quota = Quota::new(quantity, Duration::from_secs(secs)).unwrap();
            let key = quota.to_string();
            // A whole microsecond may pass, but no second request follows.
            assert_eq!(charge(&store, &key, quota, 1).await.remaining(), quantity - 1, "{key}");
        }
    }
}

#[tokio::test]
async fn microseconds_without_leading_zeros_are_added_not_joined() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let quota = Quota::new(1, Duration::from_micros(100)).unwrap();
    // Few microseconds, then many: joined to the seconds, they would be years apart.
    for (at, micros) in [0, 7, 99, 999_999, SEC, SEC + 7].into_iter().enumerate() {
        let key = format!("k{at}");
        let at = START / SEC * SEC + micros;
        assert!(charge_at(&mut lua, at, &key, quota, 1).fits());
        assert!(!charge_at(&mut lua, at + 99, &key, quota, 1).fits(), "{micros}");
        assert!(charge_at(&mut lua, at + 100, &key, quota, 1).fits(), "{micros}");
    }
}

#[tokio::test]
async fn the_server_tells_the_time() {
    let (server, store) = redis().await;
    for _ in 0..100 {
        let before = time(&server);
        let now = store.acquire(&[hit("k", Quota::per_second(1), 1)]).await.unwrap().now;
        assert!((before..=time(&server)).contains(&now.as_micros()));
    }
}

#[tokio::test]
async fn a_clock_that_steps_back_locks_nobody_out_for_longer_than_a_full_refill() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let quota = Quota::per_minute(60).burst(10);
    for (at, step) in [1, SEC, 60 * SEC, DAY, 20 * 365 * DAY].into_iter().enumerate() {
        let key = format!("k{at}");
        assert!(charge_at(&mut lua, START, &key, quota, 10).fits());
        let back = START - step;
        // Also a denied call moves the state back to the bound.
        assert!(!charge_at(&mut lua, back, &key, quota, 1).fits(), "{step}");
        let state: u64 = lua.server().get(key.as_bytes()).unwrap().parse().unwrap();
        assert_eq!(state, back + 10 * SEC, "{step}");
        assert!(charge_at(&mut lua, back + SEC, &key, quota, 1).fits(), "{step}");
        assert!(charge_at(&mut lua, back + 11 * SEC, &key, quota, 10).fits(), "{step}");
    }
}

#[tokio::test]
async fn a_clock_that_steps_back_gives_nothing_away() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let quota = Quota::per_minute(60).burst(10);
    charge_at(&mut lua, START, "k", quota, 4);
    assert_eq!(charge_at(&mut lua, START - SEC, "k", quota, 0).remaining(), 5);
    assert_eq!(charge_at(&mut lua, START - DAY, "k", quota, 0).remaining(), 0);
    // And a step forward no more than all.
    assert_eq!(charge_at(&mut lua, START + DAY, "k", quota, 0).remaining(), 10);
}

#[tokio::test]
async fn one_state_from_the_future_does_not_block_a_key_on_the_real_server() {
    let (server, store) = redis().await;
    let quota = Quota::new(2, Duration::from_millis(100)).unwrap();
    server.command(&["SET", "faults:k", "4102444800000000"]);
    let answer = store.acquire(&[hit("k", quota, 1)]).await.unwrap();
    assert!(!answer.standings[0].fits());
    assert_eq!(kept(&server, "k"), (answer.now.as_micros() + 100_000).to_string());
    sleep(answer.standings[0].wait().unwrap());
    assert!(charge(&store, "k", quota, 1).await.fits());
}

#[tokio::test]
async fn refill_is_smooth_within_a_second() {
    let (_server, store) = redis().await;
    let quota = Quota::per_second(1_000);
    assert!(charge(&store, "k", quota, 1_000).await.fits());
    for _ in 0..10 {
        sleep(Duration::from_millis(10));
        let remaining = charge(&store, "k", quota, 0).await.remaining();
        assert!(remaining >= 10, "{remaining} after 10 ms");
        charge(&store, "k", quota, remaining).await;
    }
}

#[tokio::test]
async fn the_largest_costs_and_quotas_do_not_wrap_to_allow() {
    let (_server, store) = redis().await;
    let longest = Quota::new(1, TEN_YEARS).unwrap();
    let deepest = Quota::new(TEN_YEARS.as_secs(), TEN_YEARS).unwrap();
    let fastest = Quota::per_second(1_000_000_000).burst(1_000_000_000_000);
    for quota in [longest, deepest, Quota::per_day(1 << 40), fastest] {
        let (key, burst) = (quota.to_string(), quota.capacity());
        for cost in [burst + 1, burst.saturating_mul(2), 1 << 53, i64::MAX as u64, u64::MAX] {
            assert!(!charge(&store, &key, quota, cost).await.fits(), "{cost} of {key}");
        }
        assert!(charge(&store, &key, quota, burst).await.fits(), "{key}");
        assert!(!charge(&store, &key, quota, burst).await.fits(), "{key}");
        assert!(!charge(&store, &key, quota, u64::MAX).await.fits(), "{key}");
    }
}
