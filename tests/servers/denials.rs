//! Denials that are remembered, of a real server.

#![cfg(test)]

use std::time::Duration;

use tokio::task::JoinSet;
use tollgate::{
    Algorithm, Calendar, Limit, Limiter, Lockout, Quota, RedisStore, Source, Timestamp,
};

use crate::support::RedisServer;

const CALLERS: u64 = 64;
const ROUNDS: u64 = 200;
const KEYS: u64 = 4;

async fn redis() -> (RedisServer, Limiter) {
    let server = RedisServer::start().await;
    // The time to answer is not what this is about.
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
    let limiter = Limiter::builder(store.connect().await.expect("a server")).breaker(None).build();
    (server, limiter)
}

/// How often the script ran.
fn asked(server: &RedisServer) -> u64 {
    let info = server.command(&["INFO", "commandstats"]);
    let calls = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    calls.map_or(0, |calls| calls.split(',').next().expect("a number").parse().expect("a number"))
}

fn limits() -> [Limit; 6] {
    let slow = |name, algorithm| Limit::new(name, Quota::per_day(3)).algorithm(algorithm);
    let lockout = Lockout::new(Duration::from_secs(100_000)).after(5);
    [
        slow("bucket", Algorithm::TokenBucket),
        slow("log", Algorithm::SlidingLog),
        slow("counter", Algorithm::SlidingCounter),
        slow("window", Algorithm::FixedWindow),
        Limit::calendar("month", 3, Calendar::Month),
        slow("locking", Algorithm::TokenBucket).lockout(lockout),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_denied_requests_reaches_the_server_rarely() {
    for limit in limits() {
        let (server, limiter) = redis().await;
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (limiter, limit) = (limiter.clone(), limit.clone());
            callers.spawn(async move {
                let (mut admitted, mut cached) = (0, 0);
                for _ in 0..ROUNDS {
                    let key = format!("user{}", caller % KEYS);
                    let decision = limiter.check(&limit, key).await.expect("an answer");
                    admitted += u64::from(decision.is_allowed());
                    cached += u64::from(decision.source() == Source::Cache);
                    assert!(!decision.is_allowed() || decision.source() == Source::Redis);
                    tokio::task::yield_now().await;
                }
                (admitted, cached)
            });
        }
        let counts = callers.join_all().await;
        let admitted: u64 = counts.iter().map(|count| count.0).sum();
        let cached: u64 = counts.iter().map(|count| count.1).sum();
        let (all, asked) = (CALLERS * ROUNDS, asked(&server));
        println!("{}: {asked} calls, {cached} of {all} decided here", limit.name());
        assert_eq!(admitted, KEYS * 3, "{}", limit.name());
        // Those who come before the first denial is known, and one for each second.
        assert!(cached > all * 9 / 10, "{cached} of {all} by the {}", limit.name());
        assert!(asked < all / 10, "{asked} calls for {all} by the {}", limit.name());
    }
}

/// The moment at which something is free, as denials tell it, is the same whoever made them.
#[tokio::test]
async fn what_clients_are_told_to_wait_is_right_wherever_it_was_decided() {
    for limit in limits() {
        let (_server, limiter) = redis().await;
        let limit = limit.cost(3);
        let all = limiter.check(&limit, "user").await.expect("an answer");
        assert!(all.is_allowed());
        let mut moments: Vec<(Source, Timestamp)> = Vec::new();
        let mut cached = 0;
        while cached < 200 {
            let decision = limiter.check(&limit, "user").await.expect("an answer");
            assert!(!decision.is_allowed());
            let wait = decision.retry_after().expect("it passes some time");
            cached += usize::from(decision.source() == Source::Cache);
            if decision.is_locked() || limit.name() != "locking" {
                moments.push((decision.source(), decision.now().saturating_add(wait)));
            }
            tokio::time::sleep(Duration::from_micros(fastrand::u64(..500))).await;
        }
        let name = limit.name();
        assert!(moments.iter().any(|(source, _)| *source == Source::Redis), "{name}");
        let first = moments[0].1;
        let same = |moment: &Timestamp| moment.as_micros().abs_diff(first.as_micros());
        // A log and the others tell whole microseconds; a counter ticks.
        let tick = if name == "counter" { 86_400_000_000_u64.div_ceil(1 << 20) } else { 0 };
        assert!(moments.iter().all(|(_, moment)| same(moment) <= tick), "{name}: {moments:?}");
    }
}

#[tokio::test]
async fn who_waits_as_told_is_admitted_by_the_server() {
    let (_server, limiter) = redis().await;
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingLog, Algorithm::SlidingCounter] {
        let quota = Quota::new(2, Duration::from_millis(80)).expect("a quota");
        let limit = Limit::new("short", quota).algorithm(algorithm);
        let (mut admitted, mut cached) = (0, 0);
        while admitted < 20 {
            let mut decision = limiter.check(&limit, "user").await.expect("an answer");
            if decision.is_allowed() {
                admitted += 1;
                continue;
            }
            for _ in 0..5 {
                decision = limiter.check(&limit, "user").await.expect("an answer");
                cached += usize::from(decision.source() == Source::Cache);
            }
            if let Some(wait) = decision.retry_after() {
                tokio::time::sleep(wait).await;
                let after = limiter.check(&limit, "user").await.expect("an answer");
                assert!(after.is_allowed(), "{algorithm:?}: {after:?}, after {decision:?}");
                admitted += 1;
            }
        }
        assert!(cached > 20, "only {cached} were decided here, {algorithm:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_reset_here_is_admitted_at_once_and_elsewhere_within_a_second() {
    let server = RedisServer::start().await;
    let store = async || {
        let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
        Limiter::builder(store.connect().await.expect("a server")).breaker(None).build()
    };
    let (here, elsewhere) = (store().await, store().await);
    let limit = Limit::new("l", Quota::per_day(1));
    let check = async |limiter: &Limiter| limiter.check(&limit, "user").await.expect("an answer");
    assert!(check(&here).await.is_allowed());
    for limiter in [&here, &elsewhere] {
        for source in [Source::Redis, Source::Cache] {
            let decision = check(limiter).await;
            assert_eq!((decision.is_allowed(), decision.source()), (false, source));
        }
    }
    here.reset(&limit, "user").await.expect("an answer");
    assert!(check(&here).await.is_allowed());
    here.reset(&limit, "user").await.expect("an answer");
    let seen = async {
        while !check(&elsewhere).await.is_allowed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), seen).await.expect("it is seen");
}
