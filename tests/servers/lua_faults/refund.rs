//! What is given back.

use std::time::Duration;

use tollgate::{
    Algorithm, Calendar, Key, Limit, MemoryStore, Quota, Stamp, Store, StoreErrorKind, Timestamp,
    algorithm::Meter,
    store::{Hit, Refund},
};

use super::{PREFIX, START, asking, left, redis, try_charge};
use crate::{
    script::Joined,
    support::{RedisServer, Value},
};

const MINUTE: u64 = 60_000_000;
const ALL: [Algorithm; 7] = [
    Algorithm::TokenBucket,
    Algorithm::SlidingLog,
    Algorithm::SlidingCounter,
    Algorithm::FixedWindow,
    Algorithm::Calendar(Calendar::Day),
    Algorithm::Calendar(Calendar::Week),
    Algorithm::Calendar(Calendar::Month),
];

/// Ten units, in a minute or a unit of the calendar.
fn limit(algorithm: Algorithm) -> Limit {
    match algorithm {
        Algorithm::Calendar(unit) => Limit::calendar("requests", 10, unit),
        _ => Limit::new("requests", Quota::per_minute(10)).algorithm(algorithm),
    }
}

fn meter(algorithm: Algorithm) -> Meter {
    algorithm.meter(limit(algorithm).quota())
}

fn hit(meter: Meter, cost: u64) -> Hit<'static> {
    Hit { key: b"k", meter, cost, shadow: false, lease: 0 }
}

/// Units that are left at a moment, once a request of `cost` was decided.
fn after(lua: &mut Joined, micros: u64, meter: Meter, cost: u64) -> (u64, Option<Stamp>) {
    let (hit, now) = (hit(meter, cost), Timestamp::from_micros(micros));
    let standing = lua.acquire(&[vec![hit]], now).0[0].standing(&hit, now);
    (standing.remaining(), standing.fits().then_some(standing.stamp()))
}

fn refund(meter: Meter, units: u64, stamp: Stamp) -> Refund<'static> {
    Refund { key: b"k", meter, units, stamp }
}

#[tokio::test]
async fn remaining_is_never_above_the_limit_whatever_is_given_back_and_how_often() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let mut rng = fastrand::Rng::new();
    for algorithm in ALL {
        let meter = meter(algorithm);
        let (mut now, mut stamps) = (START, Vec::new());
        lua.server().command(&["DEL", "k"]);
        for _ in 0..400 {
            now = match rng.u8(..8) {
                0 => now - rng.u64(..3 * MINUTE),
                1 => now + rng.u64(..40 * 24 * 60 * MINUTE),
                2..5 => now,
                _ => now + rng.u64(..MINUTE),
            };
            let (left, stamp) = after(&mut lua, now, meter, rng.u64(..6));
            stamps.extend(stamp);
            assert!(left <= 10, "{algorithm:?}: {left}");
            // Also a second time, and more than was charged.
            if let Some(stamp) = rng.choice(&stamps) {
                let refund = refund(meter, rng.u64(1..=10), *stamp);
                lua.refund(&[refund], Timestamp::from_micros(now));
            }
            let (left, _) = after(&mut lua, now, meter, 0);
            assert!(left <= 10, "{algorithm:?}: {left}");
        }
        // All that is left can be taken, and no more.
        let (left, _) = after(&mut lua, now, meter, 0);
        assert_eq!(after(&mut lua, now, meter, left).0, 0, "{algorithm:?}");
        assert_eq!(after(&mut lua, now, meter, 1).1, None, "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_refund_after_the_window_turned_over_never_gives_more_than_the_limit() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    for algorithm in ALL {
        let meter = meter(algorithm);
        lua.server().command(&["DEL", "k"]);
        let stamp = after(&mut lua, START, meter, 10).1.unwrap();
        // The second month from then on is over as well.
        let later = START + 62 * 24 * 60 * MINUTE;
        assert_eq!(after(&mut lua, later, meter, 4).0, 6, "{algorithm:?}");
        lua.refund(&[refund(meter, 10, stamp)], Timestamp::from_micros(later));
        assert_eq!(after(&mut lua, later, meter, 0).0, 6, "{algorithm:?}");
        assert_eq!(after(&mut lua, later, meter, 7).1, None, "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_refund_at_zero_works() {
    let (server, store) = redis().await;
    let limiter = asking(store);
    for algorithm in ALL {
        server.command(&["FLUSHALL"]);
        // So slow that nothing comes back during a test.
        let limit = match algorithm {
            Algorithm::Calendar(_) => limit(algorithm),
            _ => Limit::new("requests", Quota::per_day(10)).algorithm(algorithm),
        };
        let take = async |units| limiter.check(&limit.clone().cost(units), "k").await.unwrap();
        let all = take(10).await;
        assert!(!take(1).await.is_allowed(), "{algorithm:?}");
        all.refund_units("requests", 3).await.unwrap();
        assert_eq!(take(3).await.remaining(), Some(0), "{algorithm:?}");
        assert!(!take(1).await.is_allowed(), "{algorithm:?}");
        // The rest of it, though more is asked for, and then nothing.
        all.refund_units("requests", 100).await.unwrap();
        all.refund().await.unwrap();
        assert_eq!(take(0).await.remaining(), Some(7), "{algorithm:?}");
    }
}

/// As the store itself asks, of whichever were the latest.
#[tokio::test]
async fn the_latest_units_come_back_as_they_do_in_memory() {
    let (server, store) = redis().await;
    let limiters = [asking(store), asking(MemoryStore::new())];
    for algorithm in ALL {
        server.command(&["FLUSHALL"]);
        let large = match algorithm {
            Algorithm::Calendar(unit) => Limit::calendar("requests", 5_000, unit),
            _ => Limit::new("requests", Quota::new(5_000, Duration::from_secs(86_400)).unwrap())
                .algorithm(algorithm),
        };
        for limiter in &limiters {
            for _ in 0..5 {
                limiter.check(&large.clone().cost(1_000), "k").await.unwrap();
            }
            let mut left = Vec::new();
            for units in [1, 1_500, 0, 2_000, u64::MAX] {
                limiter.give_back(&large, "k", units).await.unwrap();
                left.push(limiter.look(&large, "k").await.unwrap().remaining().unwrap());
            }
            assert_eq!(left, [1, 1_501, 1_501, 3_501, 5_000], "{algorithm:?}");
            limiter.reset(&large, "k").await.unwrap();
        }
    }
}

/// What is kept after a refund lasts as long as it says anything, and is set with that.
#[tokio::test]
async fn a_refund_keeps_value_and_expiry_together() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let into = START % MINUTE;
    let day = 86_400_000_000 - START % 86_400_000_000;
    for (algorithm, part, all) in [
        (Algorithm::TokenBucket, 18_000_000, Some(0)),
        (Algorithm::SlidingLog, 59_999_000, None),
        (Algorithm::SlidingCounter, 2 * MINUTE - into, Some(0)),
        (Algorithm::FixedWindow, MINUTE - into, Some(0)),
        // The 30th of November 2025, a Sunday.
        (Algorithm::Calendar(Calendar::Day), day, Some(0)),
        (Algorithm::Calendar(Calendar::Week), day, Some(0)),
        (Algorithm::Calendar(Calendar::Month), day, Some(0)),
    ] {
        let meter = meter(algorithm);
        lua.server().command(&["DEL", "k"]);
        let stamps = [START - 2_000, START - 1_000, START].map(|now| {
            let (_, stamp) = after(&mut lua, now, meter, 3);
            stamp.unwrap()
        });
        let give = |lua: &mut Joined, units, at: usize| {
            let refund = refund(meter, units, stamps[at]);
            let written = lua.refund(&[refund], Timestamp::from_micros(START));
            written.into_iter().map(|write| write.until).next()
        };
        // Three units are left: of a log, those that were taken a millisecond ago.
        give(&mut lua, 3, 2);
        let until = |left: u64| (START + left) / 1_000_000 + 1;
        assert_eq!(give(&mut lua, 3, 0), Some(until(part)), "{algorithm:?}");
        assert_eq!(give(&mut lua, 3, 1), all.map(until), "{algorithm:?}");
        let there = lua.server().command(&["EXISTS", "k"]);
        assert_eq!(there, Value::Integer(all.is_some().into()), "an empty log is gone");
    }
}

#[tokio::test]
async fn a_refund_to_a_key_that_is_gone_leaves_none() {
    let (server, store) = redis().await;
    for algorithm in ALL {
        let meter = meter(algorithm);
        let stamp = store.acquire(&[hit(meter, 5)]).await.unwrap().standings[0].stamp();
        server.command(&["FLUSHALL"]);
        store.refund(&[refund(meter, 5, stamp)]).await.unwrap();
        assert_eq!(left(&server, "k"), -2, "{algorithm:?}");
    }
}

/// A refund of nothing that is still there does not renew an expiry.
#[tokio::test]
async fn a_refund_that_gives_nothing_writes_nothing() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let minute = [Algorithm::TokenBucket, Algorithm::SlidingLog, Algorithm::FixedWindow];
    let old = START - 62 * 24 * 60 * MINUTE;
    // Long ago, and a moment ago: what falls out of a log stays there until the next charge.
    let ages = ALL.map(|algorithm| (algorithm, old, START)).into_iter();
    let ages = ages.chain(minute.map(|by| (by, START - MINUTE - 1, START - MINUTE / 2)));
    for (algorithm, old, new) in ages {
        let meter = meter(algorithm);
        lua.server().command(&["DEL", "k"]);
        let stamp = after(&mut lua, old, meter, 5).1.unwrap();
        after(&mut lua, new, meter, 5);
        let written = lua.refund(&[refund(meter, 5, stamp)], Timestamp::from_micros(START));
        assert_eq!(written, [], "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_foreign_key_fails_only_its_own_refund_and_stays_as_it_is() {
    let (server, store) = redis().await;
    let text: &[&str] = &["SET", "abc"];
    let set: &[&str] = &["ZADD", "1", "x"];
    for algorithm in ALL {
        let spoilers =
            [&["RPUSH", "x"], &["HSET", "x", "1"][..], &["SADD", "x"], text, set, &["SET", ""]];
        for spoiler in spoilers {
            server.command(&["FLUSHALL"]);
            let meter = meter(algorithm);
            let keys: [&[u8]; 3] = [b"first", b"bad", b"last"];
            let hits = keys.map(|key| Hit { key, meter, cost: 10, shadow: false, lease: 0 });
            let standings = try_charge(&store, &hits).await.unwrap();
            let bad = format!("{PREFIX}bad");
            server.command(&["DEL", &bad]);
            let mut command = spoiler.to_vec();
            command.insert(1, &bad);
            server.command(&command);
            let dump = server.command(&["DUMP", &bad]);
            let refunds = [0, 1, 2].map(|at| Refund {
                key: keys[at],
                meter,
                units: 10,
                stamp: standings[at].stamp(),
            });
            let error = store.refund(&refunds).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{spoiler:?}: {error}");
            assert!(error.to_string().contains("WRONGTYPE"), "{algorithm:?}, {spoiler:?}: {error}");
            assert_eq!(server.command(&["DUMP", &bad]), dump, "{algorithm:?}, {spoiler:?}");
            for key in [b"first".as_slice(), b"last"] {
                let look = Hit { key, meter, cost: 0, shadow: false, lease: 0 };
                let remaining = try_charge(&store, &[look]).await.unwrap()[0].remaining();
                assert_eq!(remaining, 10, "{algorithm:?}, {spoiler:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_shadow_whose_key_holds_something_else_fails_no_refund() {
    let (server, store) = redis().await;
    let limiter = asking(store);
    let enforced = Limit::new("enforced", Quota::per_day(10));
    let shadow = Limit::new("watching", Quota::per_day(10)).shadow();
    server.command(&["SET", "faults:{id:k}:-/watching:tb86400s", "abc"]);
    let pairs = [(&enforced, Key::from("k")), (&shadow, Key::from("k"))];
    let decision = limiter.check_all(pairs).await.unwrap();
    assert!(decision.is_allowed());
    decision.refund().await.unwrap();
    assert_eq!(limiter.look(&enforced, "k").await.unwrap().remaining(), Some(10));
}

#[tokio::test]
async fn a_refund_to_a_lock_or_twice_to_a_key_is_refused_before_anything_is_given_back() {
    let (_server, redis) = redis().await;
    let stores: [Box<dyn Store>; 2] = [Box::new(redis), Box::new(MemoryStore::new())];
    let bucket = Algorithm::TokenBucket.meter(Quota::per_day(10));
    let lockout = tollgate::Lockout::new(Duration::from_secs(86_400));
    let lock = Meter::Lock(lockout.lock(Quota::per_day(10)));
    for store in stores {
        let stamp = store.acquire(&[hit(bucket, 10)]).await.unwrap().standings[0].stamp();
        let first = refund(bucket, 10, stamp);
        for second in [Refund { key: b"lock", meter: lock, ..first }, Refund { units: 1, ..first }]
        {
            let error = store.refund(&[first, second]).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        }
        let look = store.acquire(&[hit(bucket, 0)]).await.unwrap();
        assert_eq!(look.standings[0].remaining(), 0, "{store:?}");
        store.refund(&[]).await.unwrap();
    }
}
