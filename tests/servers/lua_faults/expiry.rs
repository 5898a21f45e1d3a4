//! Expiry.

use std::{thread::sleep, time::Duration};

use tollgate::{Quota, Store as _, Timestamp};

use super::{PREFIX, START, charge, hit, kept, left, redis, time};
use crate::{
    differential::{Kind, Trace},
    script::{Joined, SOURCE, Script},
    support::{RedisServer, Value},
};

#[tokio::test]
async fn a_key_lives_until_it_equals_a_fresh_one_in_milliseconds() {
    let (server, store) = redis().await;
    for (quota, cost, millis) in [
        (Quota::per_second(1), 1, 1_000),
        (Quota::per_second(10), 5, 500),
        (Quota::per_minute(1), 1, 60_000),
        (Quota::per_minute(7), 3, 25_715),
        (Quota::per_day(1), 1, 86_400_000),
        (Quota::new(1, Duration::from_secs(315_360_000)).unwrap(), 1, 315_360_000_000),
    ] {
        let key = quota.to_string();
        let now = store.acquire(&[hit(&key, quota, cost)]).await.unwrap().now;
        let left = left(&server, &key);
        let passed = i64::try_from((time(&server) - now.as_micros()).div_ceil(1_000)).unwrap();
        let bounds = millis - passed..=millis + 1;
        assert!(bounds.contains(&left), "{left} ms left of {millis} for {key}");
    }
}

#[tokio::test]
async fn a_time_to_live_is_rounded_up_and_one_more() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let span = |nanos| Quota::new(1, Duration::from_nanos(nanos)).unwrap();
    for (quota, ttl) in [
        (Quota::per_second(1_000_000_000), 2),
        (span(1_000), 2),
        (span(1_001), 2),
        (span(999_999), 2),
        (span(1_000_000), 2),
        (span(1_000_001), 3),
        (span(1_999_999), 3),
        (span(2_000_000), 3),
        (Quota::per_second(3), 335),
    ] {
        lua.server().command(&["DEL", "k"]);
        let (_, written) = lua.acquire(&[vec![hit("k", quota, 1)]], Timestamp::from_micros(START));
        assert_eq!(written[0].ttl, ttl, "{quota}");
    }
}

#[tokio::test]
async fn no_time_to_live_is_one_that_the_server_refuses() {
    let (_server, store) = redis().await;
    for nanos in (1_000..3_000_000).step_by(1_009) {
        let quota = Quota::new(1, Duration::from_nanos(nanos)).unwrap();
        charge(&store, "k", quota, 1).await;
    }
}

#[tokio::test]
async fn value_and_expiry_are_set_in_one_command() {
    let (server, store) = redis().await;
    let mut monitor = server.connection();
    monitor.call(&["MONITOR"]).unwrap().unwrap();
    charge(&store, "k", Quota::per_minute(10), 1).await;
    server.command(&["ECHO", "the end"]);
    let mut ran = Vec::new();
    loop {
        let line = monitor.receive().unwrap().unwrap();
        if line.contains("the end") {
            break;
        }
        let words = line.split_once("lua] ").map(|(_, words)| words);
        ran.extend(words.map(|words| words.replace('"', "")));
    }
    let [time, get, set] = ran.as_slice() else { panic!("{ran:?}") };
    assert_eq!((time.as_str(), get.as_str()), ("TIME", "GET faults:k"));
    assert_eq!(*set, format!("SET faults:k {} PX 6001", kept(&server, "k")));
}

#[tokio::test]
async fn no_key_is_ever_without_expiry() {
    let server = RedisServer::start().await;
    let mut script = Script::load(&server, SOURCE);
    let mut trace = Trace::new(fastrand::u64(..), Kind::Mixed);
    let mut seen = 0;
    for _ in 0..20 {
        let pool = trace.pool();
        for _ in 0..10 {
            script.acquire(&trace.batch(&pool).0);
        }
        let Value::Array(keys) = script.command(&["KEYS", "*"]) else { panic!("no list") };
        for key in keys {
            let Value::Text(key) = key else { panic!("{key:?}") };
            assert_ne!(script.command(&["PTTL", &key]), Value::Integer(-1), "{key}");
            seen += 1;
        }
        script.command(&["FLUSHDB"]);
    }
    assert!(seen > 0, "nothing was kept");
}

#[tokio::test]
async fn a_key_that_lost_its_expiry_gets_one_with_the_next_charge() {
    let (server, store) = redis().await;
    let quota = Quota::per_minute(10);
    charge(&store, "k", quota, 1).await;
    server.command(&["PERSIST", &format!("{PREFIX}k")]);
    assert_eq!(left(&server, "k"), -1);
    charge(&store, "k", quota, 1).await;
    assert!(left(&server, "k") > 0);
}

#[tokio::test]
async fn neither_a_denial_nor_a_look_renews_the_expiry() {
    let (server, store) = redis().await;
    let quota = Quota::per_minute(10);
    assert!(charge(&store, "k", quota, 10).await.fits());
    let before = (kept(&server, "k"), left(&server, "k"));
    sleep(Duration::from_millis(50));
    for cost in [0, 1, 5, 10, 11] {
        assert_eq!(charge(&store, "k", quota, cost).await.fits(), cost == 0);
    }
    let after = (kept(&server, "k"), left(&server, "k"));
    assert_eq!(after.0, before.0);
    assert!(after.1 <= before.1 - 50, "{} ms left, {} before", after.1, before.1);
}

#[tokio::test]
async fn who_idles_is_not_handed_an_early_full_bucket() {
    let (server, store) = redis().await;
    let quota = Quota::new(100, Duration::from_millis(300)).unwrap();
    for _ in 0..5 {
        assert!(charge(&store, "k", quota, 100).await.fits());
        let state = kept(&server, "k");
        let full_at: f64 = state.parse().unwrap();
        while left(&server, "k") != -2 {
            assert!(left(&server, "k") <= 301 && left(&server, "k") != -1, "kept too long");
        }
        let answer = store.acquire(&[hit("k", quota, 0)]).await.unwrap();
        assert!(answer.now.as_micros() as f64 >= full_at, "gone before {state}");
        assert_eq!(answer.standings[0].remaining(), 100);
    }
}

/// Servers differ in it: some remove a key as soon as the millisecond begins in which it ends.
#[tokio::test]
async fn no_key_is_gone_before_it_equals_a_fresh_one() {
    // Servers look for such keys far less often if they are not told to.
    let server = RedisServer::start_with(&["--hz", "500"]).await;
    let mut script = Script::load(&server, SOURCE);
    let quotas: Vec<(String, Quota)> = (1..=60)
        .map(|at| (format!("k{at}"), Quota::new(1, Duration::from_micros(at * 97)).unwrap()))
        .collect();
    let batch: Vec<_> = quotas.iter().map(|(key, quota)| vec![hit(key, *quota, 1)]).collect();
    let look: Vec<&str> =
        std::iter::once("MGET").chain(quotas.iter().map(|(key, _)| key.as_str())).collect();
    for _ in 0..200 {
        let (now, _) = script.acquire(&batch);
        let mut left = quotas.len();
        while left > 0 {
            let Value::Array(found) = script.command(&look) else { panic!("no list") };
            let later = Duration::from_micros(time(&server) - now.as_micros());
            for ((_, quota), _) in
                quotas.iter().zip(&found).filter(|(_, found)| **found == Value::Nil)
            {
                assert!(later >= quota.period(), "{quota}: gone after {later:?}");
            }
            left = found.iter().filter(|found| **found != Value::Nil).count();
        }
    }
}
