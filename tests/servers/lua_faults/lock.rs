//! Locks, and the keys that they live in.

use std::{thread::sleep, time::Duration};

use tollgate::{
    Key, Limit, Limiter, Lockout, MemoryStore, Quota, StoreErrorKind, Timestamp,
    algorithm::{Algorithm, Meter},
    store::Hit,
};

use super::{START, asking, kept, left, redis, time, try_charge};
use crate::{
    differential::{Kind, Trace},
    script::{Joined, Kept, SOURCE, Script},
    support::{RedisServer, Value},
};

const QUOTA: Quota = Quota::per_day(2);

fn bucket(cost: u64) -> Hit<'static> {
    Hit { key: b"k", meter: Algorithm::TokenBucket.meter(QUOTA), cost, shadow: false, lease: 0 }
}

fn lock(after: u64, length: Duration) -> Hit<'static> {
    let meter = Meter::Lock(Lockout::new(length).after(after).lock(QUOTA));
    Hit { key: b"lock", meter, cost: 1, shadow: false, lease: 0 }
}

#[tokio::test]
async fn asking_while_locked_never_changes_the_lock_or_renews_its_expiry() {
    let (server, store) = redis().await;
    let limiter = asking(store);
    let tries = Limit::new("tries", QUOTA).lockout(Lockout::new(Duration::from_secs(86_400)));
    let key = "{id:k}:-/tries:lk";
    assert!(limiter.check(&tries.clone().cost(2), "k").await.unwrap().is_allowed());
    assert_eq!(left(&server, key), -2, "who was not denied has no lock");
    assert!(limiter.check(&tries, "k").await.unwrap().is_locked());
    let before = (kept(&server, key), left(&server, key));
    assert!(before.0.ends_with(" 1") && before.1 > 86_390_000, "{before:?}");
    sleep(Duration::from_millis(50));
    for cost in [0, 1, 2, 3].repeat(10) {
        let decision = limiter.check(&tries.clone().cost(cost), "k").await.unwrap();
        assert_eq!((decision.is_locked(), decision.is_allowed()), (true, cost == 0));
    }
    let after = (kept(&server, key), left(&server, key));
    assert_eq!(after.0, before.0);
    assert!(after.1 <= before.1 - 50, "{} ms left, {} before", after.1, before.1);
    limiter.reset(&tries, "k").await.unwrap();
    assert_eq!(server.command(&["DBSIZE"]), "0", "neither the bucket nor the lock");
}

#[tokio::test]
async fn a_lock_lives_until_the_second_ends_in_which_it_does() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let day = 86_400_000_000;
    let rest = 1_000_000 - START % 1_000_000;
    for (after, length, lives) in [
        (1, Duration::from_secs(86_400), vec![day]),
        (1, Duration::from_micros(day + rest - 1), vec![day + rest - 1]),
        (1, Duration::from_micros(day + rest), vec![day + rest]),
        // Until the third, denials are remembered for as long as the limit takes to refill.
        (3, Duration::from_secs(172_800), vec![day, day - 1_000, 2 * day]),
    ] {
        lua.server().command(&["DEL", "lock"]);
        for (at, life) in (0..).zip(lives) {
            let batch = [vec![bucket(3), lock(after, length)]];
            let now = Timestamp::from_micros(START + at * 1_000);
            let (_, written) = lua.acquire(&batch, now);
            assert_eq!(written.len(), 1, "of a denied request, the lock alone");
            let end = START + at * 1_000 + life;
            let until = end / 1_000_000 + 1;
            assert_eq!((written[0].key.as_str(), written[0].until), ("lock", until), "{length:?}");
            let Kept::Text(text) = &written[0].kept else { panic!("{written:?}") };
            let until: u64 = text.split(' ').next().unwrap().parse().unwrap();
            assert!(until <= end && until + 1_000 > end, "{text}: {length:?}");
        }
    }
}

#[tokio::test]
async fn no_lock_is_ever_without_expiry() {
    let server = RedisServer::start().await;
    let mut script = Script::load(&server, SOURCE);
    let mut trace = Trace::new(fastrand::u64(..), Kind::Mixed);
    let mut locks = 0;
    for _ in 0..20 {
        let pool = trace.pool();
        for _ in 0..10 {
            script.acquire(&trace.batch(&pool).0);
        }
        let Value::Array(keys) = script.command(&["KEYS", "*:lk"]) else { panic!("no list") };
        for key in &keys {
            let Value::Text(key) = key else { panic!("{key:?}") };
            assert_ne!(script.command(&["PTTL", key]), Value::Integer(-1), "{key}");
        }
        locks += keys.len();
        script.command(&["FLUSHDB"]);
    }
    assert!(locks > 20, "few locks: {locks}");
}

#[tokio::test]
async fn a_lock_that_lost_its_expiry_ends_all_the_same() {
    let (server, store) = redis().await;
    let now = time(&server);
    let hits = [bucket(1), lock(1, Duration::from_secs(86_400))];
    server.command(&["SET", "faults:lock", &format!("{} 1", now + 3_600_000_000)]);
    assert!(!try_charge(&store, &hits).await.unwrap()[1].fits());
    server.command(&["SET", "faults:lock", &format!("{now} 1")]);
    assert!(try_charge(&store, &hits).await.unwrap()[1].fits());
}

#[tokio::test]
async fn a_key_that_holds_no_lock_is_a_typed_error_and_never_a_silent_pass() {
    let (server, store) = redis().await;
    let hits = [bucket(1), lock(1, Duration::from_secs(86_400))];
    let texts = [
        "",
        "abc",
        "1",
        "1 ",
        " 1 1",
        "1 1 1",
        "1 -1",
        "1.5 1",
        "1e9 1",
        "1 1\n",
        "12345678901234567 1",
        "1 12345678901",
    ];
    let others = [vec!["RPUSH", "x"], vec!["HSET", "x", "1"], vec!["ZADD", "1", "x"]];
    let spoilers = texts.map(|text| vec!["SET", text]).into_iter().chain(others);
    for mut spoiler in spoilers {
        server.command(&["FLUSHALL"]);
        spoiler.insert(1, "faults:lock");
        server.command(&spoiler);
        let dump = server.command(&["DUMP", "faults:lock"]);
        let error = try_charge(&store, &hits).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{spoiler:?}: {error}");
        assert!(error.to_string().contains("WRONGTYPE"), "{spoiler:?}: {error}");
        assert_eq!(server.command(&["DUMP", "faults:lock"]), dump, "{spoiler:?}");
        assert_eq!(left(&server, "k"), -2, "{spoiler:?}: nothing was charged");
    }
}

#[tokio::test]
async fn a_key_that_its_limit_cannot_read_counts_no_denial() {
    let (server, store) = redis().await;
    server.command(&["SET", "faults:k", "abc"]);
    let hits = [bucket(1), lock(1, Duration::from_secs(86_400))];
    assert!(try_charge(&store, &hits).await.is_err());
    assert_eq!(left(&server, "lock"), -2, "nobody was denied");
}

#[tokio::test]
async fn a_lock_counts_no_denial_of_another_limit() {
    let (_server, redis) = redis().await;
    for limiter in [asking(redis), Limiter::new(MemoryStore::new())] {
        let locking = |name| {
            let lockout = Lockout::new(Duration::from_secs(86_400));
            Limit::new(name, Quota::per_day(10)).lockout(lockout)
        };
        let (first, last) = (locking("first"), locking("last"));
        let few = Limit::new("few", Quota::per_day(1));
        assert!(limiter.check(&few, "k").await.unwrap().is_allowed());
        let pairs = || [&first, &few, &last].map(|limit| (limit, Key::from("k")));
        for _ in 0..5 {
            let denied = limiter.check_all(pairs()).await.unwrap();
            assert!(!denied.is_allowed() && !denied.is_locked(), "{denied:?}");
        }
        for limit in [&first, &last] {
            let decision = limiter.check(limit, "k").await.unwrap();
            assert_eq!(decision.remaining(), Some(9), "{decision:?}");
        }
    }
}
