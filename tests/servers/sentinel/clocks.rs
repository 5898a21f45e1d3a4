//! The next primary has another clock.

use std::time::Duration;

use tollgate::{Algorithm, Limit, Limiter, Quota, RedisStore};

use super::{patient, recovers};
use crate::{
    clock::Clock,
    support::sentinel::{Topology, until},
};

const UNITS: u64 = 5;

fn limits(quota: Quota, name: &str) -> Vec<Limit> {
    let algorithms = [
        Algorithm::TokenBucket,
        Algorithm::SlidingLog,
        Algorithm::SlidingCounter,
        Algorithm::FixedWindow,
    ];
    let limit = |algorithm| Limit::new(format!("{name}-{algorithm:?}"), quota).algorithm(algorithm);
    algorithms.into_iter().map(limit).collect()
}

/// How much is admitted, until it denies.
async fn drained(limiter: &Limiter, limit: &Limit) -> u64 {
    for admissions in 0..100 {
        let decision = limiter.check(limit, "somebody").await.expect("an answer");
        if !decision.is_allowed() {
            let wait = decision.wait().expect("it comes back");
            // A counter takes the window before into account.
            assert!(wait <= 2 * limit.quota().period(), "{decision:?}");
            return admissions;
        }
    }
    panic!("nothing denies {limit:?}");
}

async fn fails_over(seconds: i64) {
    let Some(clock) = Clock::new() else { return };
    clock.step(seconds);
    let replica = |at: usize| if at > 0 { clock.environment() } else { Vec::new() };
    let mut topology = Topology::start_each_in(replica).await;
    let limiter = patient(RedisStore::builder(topology.url())).await;
    let long = limits(Quota::per_hour(UNITS), "long");
    let short = Quota::new(UNITS, Duration::from_secs(4)).expect("a quota");
    let short = limits(short, "short");
    for limit in &long {
        assert_eq!(drained(&limiter, limit).await, UNITS, "{limit:?}");
    }
    for limit in &short {
        drained(&limiter, limit).await;
    }
    topology.servers[0].command(&["WAIT", "2", "5000"]);
    topology.servers[0].kill();
    topology.failed_over(0).await;
    recovers(&limiter, "another").await;
    for limit in &long {
        let more = drained(&limiter, limit).await;
        println!("{}: {more} more", limit.name());
        assert!(more <= UNITS, "{limit:?}: {more} more");
    }
    for limit in &short {
        until("it is admitted again", async || {
            limiter.check(limit, "somebody").await.is_ok_and(|decision| decision.is_allowed())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_an_hour_behind_locks_nobody_and_admits_one_burst_more_at_most() {
    fails_over(-3_600).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_an_hour_ahead_locks_nobody_and_admits_one_burst_more_at_most() {
    fails_over(3_600).await;
}
