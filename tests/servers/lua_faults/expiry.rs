//! Expiry.

use std::{thread::sleep, time::Duration};

use tollgate::{Quota, Store as _, Timestamp};

use super::{PREFIX, START, charge, hit, kept, left, redis, time};
use crate::{
    differential::{Kind, Trace},
    script::{Joined, SOURCE, Script},
    support::{Connection, RedisServer, Value},
};

#[tokio::test]
async fn a_key_lives_until_the_second_ends_in_which_it_equals_a_fresh_one() {
    let (server, store) = redis().await;
    for (quota, cost) in [
        (Quota::per_second(1), 1),
        (Quota::per_second(10), 5),
        (Quota::per_minute(1), 1),
        (Quota::per_minute(7), 3),
        (Quota::per_day(1), 1),
        (Quota::new(1, Duration::from_secs(315_360_000)).unwrap(), 1),
    ] {
        let key = quota.to_string();
        let now = store.acquire(&[hit(&key, quota, cost)]).await.unwrap().now;
        let state = kept(&server, &key);
        let full_at: u64 = state.split('.').next().unwrap().parse().unwrap();
        let left = left(&server, &key);
        let until = i64::try_from((full_at / 1_000_000 + 1) * 1_000).unwrap();
        let millis = |micros: u64| i64::try_from(micros / 1_000).unwrap();
        let bounds = until - millis(time(&server))..=until - millis(now.as_micros());
        assert!(bounds.contains(&left), "{left} ms left of {bounds:?} for {key}");
    }
}

#[tokio::test]
async fn an_expiry_is_the_second_after_that_in_which_the_bucket_is_full() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let span = |nanos| Quota::new(1, Duration::from_nanos(nanos)).unwrap();
    let (second, left) = (START / 1_000_000, 1_000_000 - START % 1_000_000);
    for (quota, until) in [
        (span(1_000), second + 1),
        (span((left - 1) * 1_000), second + 1),
        (span((left - 1) * 1_000 + 999), second + 1),
        (span(left * 1_000), second + 2),
        (span((left + 1_000_000) * 1_000 - 1), second + 2),
        (span((left + 1_000_000) * 1_000), second + 3),
    ] {
        lua.server().command(&["DEL", "k"]);
        let now = Timestamp::from_micros(START);
        let (_, written) = lua.acquire(&[vec![hit("k", quota, 1)]], now);
        assert_eq!(written[0].until, until, "{quota}");
        // What is there is added to, and then has the expiry of all.
        let (_, written) = lua.acquire(&[vec![hit("k", quota.burst(9), 8)]], now);
        let full_at = START + quota.period().as_nanos() as u64 * 9 / 1_000;
        assert_eq!(written[0].until, full_at / 1_000_000 + 1, "{quota}, all of it");
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
    // Whole microseconds, and more.
    for quota in [Quota::per_minute(10), Quota::per_minute(7)] {
        let key = quota.to_string();
        charge(&store, &key, quota, 1).await;
        let first = kept(&server, &key);
        let ran = commands(&server, &mut monitor);
        let [time, get, set] = ran.as_slice() else { panic!("{ran:?}") };
        assert_eq!((time.as_str(), get), ("TIME", &format!("GET {PREFIX}{key}")));
        assert_eq!(*set, format!("SET {PREFIX}{key} {first} EXAT {}", until(&first)));

        charge(&store, &key, quota, 1).await;
        let second = kept(&server, &key);
        let ran = commands(&server, &mut monitor);
        let set = &ran[2..];
        let number = |state: &str| state.parse::<u64>();
        if let (Ok(first), Ok(was)) = (number(&second), number(&first)) {
            let more = first - was;
            // What is there has an expiry already, if one that ends too early: it is never without.
            assert_eq!(
                set,
                [
                    format!("INCRBY {PREFIX}{key} {more}"),
                    format!("EXPIREAT {PREFIX}{key} {}", until(&second)),
                ]
            );
        } else {
            assert_eq!(set, [format!("SET {PREFIX}{key} {second} EXAT {}", until(&second))]);
        }
    }
}

/// The second of the expiry of a state.
fn until(state: &str) -> u64 {
    state.split('.').next().unwrap().parse::<u64>().unwrap() / 1_000_000 + 1
}

/// What scripts ran since the last time.
fn commands(server: &RedisServer, monitor: &mut Connection) -> Vec<String> {
    server.command(&["ECHO", "the end"]);
    let mut ran = Vec::new();
    loop {
        let line = monitor.receive().unwrap().unwrap();
        if line.contains("the end") {
            return ran;
        }
        let words = line.split_once("lua] ").map(|(_, words)| words);
        ran.extend(words.map(|words| words.replace('"', "")));
    }
}

/// A charge that leaves a bucket to be full in the same second leaves the expiry as it is.
#[tokio::test]
async fn an_expiry_is_set_anew_only_for_another_second() {
    let (server, store) = redis().await;
    let mut monitor = server.connection();
    monitor.call(&["MONITOR"]).unwrap().unwrap();
    for quota in [Quota::per_second(1_000), Quota::per_second(3_000)] {
        let (key, mut states) = (quota.to_string(), Vec::new());
        for _ in 0..200 {
            charge(&store, &key, quota, 1).await;
            states.push(kept(&server, &key));
        }
        let ran = commands(&server, &mut monitor);
        let set = ran.iter().filter(|line| line.contains("EXPIREAT") || line.contains("EXAT"));
        let seconds = states.chunk_by(|one, next| until(one) == until(next)).count();
        assert_eq!(set.count(), seconds, "{quota}");
        assert!(seconds * 20 < states.len(), "{seconds}: nothing was spared");
    }
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
            assert!(left(&server, "k") <= 1_300 && left(&server, "k") != -1, "kept too long");
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
        .map(|at| (format!("k{at}"), Quota::new(1, Duration::from_micros(at * 9_700)).unwrap()))
        .collect();
    let batch: Vec<_> = quotas.iter().map(|(key, quota)| vec![hit(key, *quota, 1)]).collect();
    let look: Vec<&str> =
        std::iter::once("MGET").chain(quotas.iter().map(|(key, _)| key.as_str())).collect();
    for _ in 0..5 {
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
