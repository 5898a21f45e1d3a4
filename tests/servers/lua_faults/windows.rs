//! Algorithms other than the bucket.

use std::{iter, thread::sleep, time::Duration};

use tollgate::{Algorithm, Calendar, Quota, Standing, Timestamp, algorithm::Meter, store::Hit};

use super::{PREFIX, START, left, redis, try_charge};
use crate::{
    script::{Joined, Kept},
    support::RedisServer,
};

const MINUTE: u64 = 60_000_000;
const WINDOWS: [Algorithm; 6] = [
    Algorithm::SlidingLog,
    Algorithm::SlidingCounter,
    Algorithm::FixedWindow,
    Algorithm::Calendar(Calendar::Day),
    Algorithm::Calendar(Calendar::Week),
    Algorithm::Calendar(Calendar::Month),
];

fn meter(algorithm: Algorithm, units: u64) -> Meter {
    match algorithm {
        Algorithm::Calendar(unit) => algorithm.meter(Quota::new(units, unit.nominal()).unwrap()),
        _ => algorithm.meter(Quota::per_minute(units)),
    }
}

fn hit(meter: Meter, cost: u64) -> Hit<'static> {
    Hit { key: b"k", meter, cost, shadow: false, lease: 0 }
}

fn at(lua: &mut Joined, micros: u64, meter: Meter, cost: u64) -> Standing {
    let (hit, now) = (hit(meter, cost), Timestamp::from_micros(micros));
    lua.acquire(&[vec![hit]], now).0[0].standing(&hit, now)
}

fn members(lua: &mut Joined) -> Vec<(String, u64)> {
    match lua.server().kept(b"k", &Kept::Log(Vec::new())) {
        Some(Kept::Log(log)) => log,
        None => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_calls_in_one_tick_count_as_two_in_a_log() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let log = meter(Algorithm::SlidingLog, 5);
    for left in [4, 3] {
        assert_eq!(at(&mut lua, START, log, 1).remaining(), left);
    }
    // In one batch too.
    let batch = [vec![hit(log, 1)], vec![hit(log, 1)]];
    lua.acquire(&batch, Timestamp::from_micros(START));
    assert_eq!(at(&mut lua, START, log, 0).remaining(), 1);
    let members = members(&mut lua);
    assert_eq!(members.len(), 4);
    assert!(members.iter().all(|(_, score)| *score == START));
    assert_eq!(at(&mut lua, START + MINUTE, log, 0).remaining(), 5);
}

#[tokio::test]
async fn a_log_holds_at_most_its_limit_and_counts_after_trimming() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let log = meter(Algorithm::SlidingLog, 7);
    let mut now = START;
    for _ in 0..500 {
        now += fastrand::u64(..MINUTE / 4);
        at(&mut lua, now, log, fastrand::u64(..4));
        assert!(members(&mut lua).len() <= 7);
    }
}

#[tokio::test]
async fn a_long_log_is_written_and_forgotten_in_full() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let log = meter(Algorithm::SlidingLog, 100_000);
    let whole = |lua: &mut Joined, now| {
        for at_once in [999, 1].into_iter().chain(iter::repeat_n(1_000, 99)) {
            assert!(at(lua, now, log, at_once).fits(), "{at_once}");
        }
    };
    whole(&mut lua, START);
    assert_eq!(members(&mut lua).len(), 100_000);
    let denied = at(&mut lua, START + 1, log, 1);
    assert_eq!((denied.fits(), denied.wait()), (false, Some(Duration::from_micros(MINUTE - 1))));
    // All of it is brought back by a clock that steps back.
    assert!(!at(&mut lua, START - MINUTE, log, 1).fits());
    assert!(members(&mut lua).iter().all(|(_, score)| *score == START - MINUTE));
    whole(&mut lua, START);
    assert_eq!(members(&mut lua).len(), 100_000);
}

#[tokio::test]
async fn what_a_log_denies_is_not_recorded() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let log = meter(Algorithm::SlidingLog, 2);
    let mut admitted = 0;
    for step in 0..600 {
        admitted += u64::from(at(&mut lua, START + step * MINUTE / 60, log, 1).fits());
    }
    assert_eq!(admitted, 2 * 10, "twice in each of ten minutes");
}

#[tokio::test]
async fn a_counter_with_a_limit_of_1_works() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let one = meter(Algorithm::SlidingCounter, 1);
    let start = START / MINUTE * MINUTE;
    assert!(at(&mut lua, start, one, 1).fits());
    let denied = at(&mut lua, start + 1, one, 1);
    assert_eq!((denied.fits(), denied.remaining()), (false, 0));
    // The whole of the next window still overlaps it.
    assert_eq!(denied.wait(), Some(Duration::from_micros(2 * MINUTE - 1)));
    assert!(!at(&mut lua, start + 2 * MINUTE - 1, one, 1).fits());
    assert!(at(&mut lua, start + 2 * MINUTE, one, 1).fits());
}

#[tokio::test]
async fn the_weighted_part_of_the_window_before_counts_in_what_remains() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let counter = meter(Algorithm::SlidingCounter, 100);
    let start = START / MINUTE * MINUTE;
    assert!(at(&mut lua, start + MINUTE / 2, counter, 80).fits());
    for (quarters, left) in [(0, 20), (1, 40), (2, 60), (3, 80), (4, 100)] {
        // A window has 2^20 ticks at most, and the overlap is whole ticks, rounded up.
        let now = start + MINUTE + quarters * MINUTE / 4 + MINUTE.div_ceil(1 << 20) - 1;
        let look = at(&mut lua, now, counter, 0);
        assert_eq!(look.remaining(), left, "after {quarters} quarters");
        assert!(!at(&mut lua, now, counter, left + 1).fits(), "after {quarters} quarters");
    }
}

#[tokio::test]
async fn a_stale_window_counts_for_nothing_and_never_below() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    for algorithm in WINDOWS {
        let meter = meter(algorithm, 10);
        lua.server().command(&["DEL", "k"]);
        assert!(at(&mut lua, START, meter, 10).fits());
        for minutes in [2 * 31 * 24 * 60, 10_000_000] {
            let look = at(&mut lua, START + minutes * MINUTE, meter, 0);
            assert_eq!((look.remaining(), look.reset()), (10, Duration::ZERO), "{algorithm:?}");
        }
        assert!(at(&mut lua, START + 10_000_000 * MINUTE, meter, 10).fits(), "{algorithm:?}");
    }
}

#[tokio::test]
async fn the_cost_counts_and_one_above_the_limit_is_never_told_to_wait() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    for algorithm in WINDOWS {
        let meter = meter(algorithm, 10);
        lua.server().command(&["DEL", "k"]);
        assert_eq!(at(&mut lua, START, meter, 0).remaining(), 10);
        assert_eq!(lua.server().kept(b"k", &Kept::Text(String::new())), None, "{algorithm:?}");
        for cost in [11, 12, 1 << 53, u64::MAX] {
            let never = at(&mut lua, START, meter, cost);
            let seen = (never.fits(), never.remaining(), never.wait());
            assert_eq!(seen, (false, 10, None), "{cost} of {algorithm:?}");
        }
        assert_eq!(at(&mut lua, START, meter, 7).remaining(), 3, "{algorithm:?}");
        assert!(!at(&mut lua, START, meter, 4).fits(), "{algorithm:?}");
        assert!(at(&mut lua, START, meter, 3).fits(), "{algorithm:?}");
    }
}

#[tokio::test]
async fn neither_a_denial_nor_a_look_changes_a_window_or_renews_its_expiry() {
    let (server, store) = redis().await;
    for algorithm in WINDOWS {
        server.command(&["FLUSHALL"]);
        let meter = meter(algorithm, 10);
        let charge = async |cost| try_charge(&store, &[hit(meter, cost)]).await.unwrap()[0].fits();
        assert!(charge(10).await);
        let key = format!("{PREFIX}k");
        let before = (server.command(&["DUMP", &key]), left(&server, "k"));
        sleep(Duration::from_millis(50));
        for cost in [0, 1, 5, 10, 11] {
            assert_eq!(charge(cost).await, cost == 0, "{cost} of {algorithm:?}");
        }
        assert_eq!(server.command(&["DUMP", &key]), before.0, "{algorithm:?}");
        assert!(left(&server, "k") <= before.1 - 50, "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_window_lives_until_the_second_ends_in_which_it_equals_a_fresh_one() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let into = START % MINUTE;
    let day = 86_400_000_000 - START % 86_400_000_000;
    for (algorithm, left) in [
        (Algorithm::SlidingLog, MINUTE),
        (Algorithm::SlidingCounter, 2 * MINUTE - into),
        (Algorithm::FixedWindow, MINUTE - into),
        // The 30th of November 2025, a Sunday.
        (Algorithm::Calendar(Calendar::Day), day),
        (Algorithm::Calendar(Calendar::Week), day),
        (Algorithm::Calendar(Calendar::Month), day),
    ] {
        lua.server().command(&["DEL", "k"]);
        let batch = [vec![hit(meter(algorithm, 10), 1)]];
        let (_, written) = lua.acquire(&batch, Timestamp::from_micros(START));
        assert_eq!(written[0].until, (START + left) / 1_000_000 + 1, "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_log_that_lost_its_expiry_gets_one_with_the_next_charge() {
    let (server, store) = redis().await;
    let log = meter(Algorithm::SlidingLog, 10);
    try_charge(&store, &[hit(log, 1)]).await.unwrap();
    server.command(&["PERSIST", &format!("{PREFIX}k")]);
    assert_eq!(left(&server, "k"), -1);
    try_charge(&store, &[hit(log, 1)]).await.unwrap();
    assert!((1..=61_000).contains(&left(&server, "k")));
}
