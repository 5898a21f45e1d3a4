//! The primary goes away under load: no request is without an answer, and the next primary is found.

#![expect(clippy::disallowed_methods, reason = "what is told is in real time")]

use std::time::{Duration, Instant};

use tollgate::{Breaker, Limit, Limiter, Quota, RedisStore};

use super::{recovers, takes};
use crate::support::{Load, Report, sentinel::Topology};

const CALLERS: usize = 64;
const PACE: Duration = Duration::from_millis(5);
/// The sentinels' time is not what the callers have to wait for.
const RECOVERY_BOUND: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_with_the_next_primary_when_one_is_killed() {
    outage("killed", |topology, primary| topology.servers[primary].kill()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_with_the_next_primary_when_one_is_frozen() {
    outage("frozen", |topology, primary| topology.servers[primary].freeze()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_with_the_next_primary_when_sentinels_are_told_to_choose_one() {
    let told = ["SENTINEL", "FAILOVER", crate::support::sentinel::NAME];
    outage("told", move |topology, _| {
        topology.sentinels[0].command(&told).expect("there are replicas");
    })
    .await;
}

async fn outage(what: &str, event: impl FnOnce(&mut Topology, usize)) -> Report {
    let mut topology = Topology::start().await;
    let store = RedisStore::connect(topology.url()).await.expect("a primary");
    // A busy machine may be slow at any time.
    let breaker = Breaker::default().slower_than(Duration::from_secs(60));
    let limiter = Limiter::builder(store).breaker(breaker).build();
    // With no state in this process: what the primaries say counts.
    let scarce = Limit::new("scarce", Quota::per_hour(100));
    let admitted = drain(&limiter, &scarce).await;
    assert_eq!(admitted, 100);

    let plenty = Limit::new("all", Quota::per_second(1_000_000));
    let load = Load::new(CALLERS).pace(PACE).start({
        let limiter = limiter.clone();
        move |caller| {
            let (limiter, limit) = (limiter.clone(), plenty.clone());
            async move {
                match limiter.check(&limit, format!("caller {caller}")).await {
                    Ok(decision) if decision.is_allowed() => "redis",
                    Ok(_) => "denied",
                    Err(_) => "failed",
                }
            }
        }
    });
    load.until_most("redis").await;
    load.phase("event");
    let begun = Instant::now();
    event(&mut topology, 0);
    topology.failed_over(0).await;
    let found = begun.elapsed();
    recovers(&limiter, "somebody").await;
    load.phase("after");
    let first = begun.elapsed();
    load.until_most("redis").await;
    let (report, most) = (load.stop().await, begun.elapsed());
    println!(
        "{what}: the sentinels agree after {found:.1?}, the first answer came after {first:.1?}, \
         most did after {most:.1?}\n{report}"
    );
    assert!(most < RECOVERY_BOUND, "{report}");
    for phase in ["start", "event", "after"] {
        assert_eq!(report.phase(phase).count("denied"), 0, "{report}");
    }

    let admitted = admitted + drain(&limiter, &scarce).await;
    println!("{what}: {admitted} of a scarce limit of 100");
    // One burst more at most, for the last writes may be lost, and what comes back meanwhile.
    assert!((100..=205).contains(&admitted), "{admitted} of a scarce limit");
    assert!(takes(&limiter, "somebody").await);
    report
}

async fn drain(limiter: &Limiter, limit: &Limit) -> u32 {
    let mut admitted = 0;
    while limiter.check(limit, "scarce").await.is_ok_and(|decision| decision.is_allowed()) {
        admitted += 1;
    }
    admitted
}
