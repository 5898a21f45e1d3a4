//! Units that are charged ahead: fewer trips to the store, the same limit.

#![cfg(test)]

mod bound;

use std::time::Duration;

use tollgate::{
    Algorithm, Calendar, Decision, Limit, Limiter, Lockout, ManualClock, MemoryStore, Policy,
    Quota, Source, StoreErrorKind,
};

use crate::support::{Broken, Flaky, memory};

/// A store that counts how often it is asked, the clock of all, and what asks it.
struct Shared {
    store: Flaky,
    clock: ManualClock,
}

impl Shared {
    fn new() -> Self {
        let (store, clock) = memory();
        Self { store: Flaky::new(store), clock }
    }

    /// One of several processes.
    fn instance(&self) -> Limiter {
        let fallback = MemoryStore::builder().clock(self.clock.clone()).build();
        Limiter::builder(self.store.clone()).fallback(fallback).build()
    }

    async fn left(&self, limit: &Limit) -> u64 {
        self.instance().look(limit, "k").await.unwrap().remaining().unwrap()
    }
}

fn busy(units: u64) -> Limit {
    Limit::new("busy", Quota::per_hour(units)).lease(100)
}

async fn check(limiter: &Limiter, limit: &Limit) -> Decision {
    limiter.check(limit, "k").await.unwrap()
}

/// Lets tasks that ask for more come to their end.
async fn settle() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_hot_key_is_charged_ahead_and_every_answer_is_as_without() {
    for limit in [busy(1_000), busy(1_000).algorithm(Algorithm::FixedWindow)] {
        let shared = Shared::new();
        let instance = shared.instance();
        let mut here = 0;
        for taken in 1..=1_000 {
            let decision = check(&instance, &limit).await;
            assert!(decision.is_allowed(), "{taken}");
            let standing = decision.verdicts()[0].standing();
            assert_eq!(standing.remaining(), 1_000 - taken, "{:?}", decision.source());
            assert_eq!(standing.wait().unwrap().is_zero(), taken < 1_000, "{taken}");
            here += usize::from(decision.source() == Source::Lease);
            settle().await;
        }
        let denied = check(&instance, &limit).await;
        assert!(!denied.is_allowed());
        let wait = denied.retry_after().unwrap();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(3_600), "{wait:?}");
        assert!(here > 900, "only {here} of 1,000 were decided here");
        assert!(shared.store.asked() < 60, "the store was asked {} times", shared.store.asked());
        shared.clock.advance(wait);
        assert!(check(&instance, &limit).await.is_allowed(), "after the wait");
    }
}

#[tokio::test]
async fn a_key_that_is_not_busy_is_not_charged_ahead() {
    let shared = Shared::new();
    let (one, other) = (shared.instance(), shared.instance());
    let limit = Limit::new("calm", Quota::per_day(1_000)).lease(100);
    for taken in 1..=20 {
        let instance = if taken % 2 == 0 { &one } else { &other };
        let decision = check(instance, &limit).await;
        assert_eq!(
            (decision.source(), decision.remaining()),
            (Source::Memory, Some(1_000 - taken))
        );
        shared.clock.advance(Duration::from_millis(300));
    }
}

#[tokio::test]
async fn what_is_held_is_bounded_and_given_back_at_the_end() {
    let shared = Shared::new();
    let instance = shared.instance();
    let limit = busy(10_000);
    for _ in 0..2_000 {
        assert!(check(&instance, &limit).await.is_allowed());
        settle().await;
        let held = 8_000_u64.min(shared.left(&limit).await);
        assert!(held <= 8_000);
    }
    let held = 8_000 - shared.left(&limit).await;
    assert!(held > 0 && held <= 100, "{held} units are held");
    instance.shutdown().await;
    assert_eq!(shared.left(&limit).await, 8_000);
    // Nothing is charged ahead any more.
    assert!(check(&instance, &limit).await.is_allowed());
    assert_eq!(shared.left(&limit).await, 7_999);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_uses_is_given_back_after_half_a_second() {
    let shared = Shared::new();
    let instance = shared.instance();
    let limit = busy(10_000);
    for _ in 0..500 {
        assert!(check(&instance, &limit).await.is_allowed());
        settle().await;
    }
    assert!(shared.left(&limit).await < 9_500);
    shared.clock.advance(Duration::from_millis(500));
    tokio::time::advance(Duration::from_millis(300)).await;
    settle().await;
    let back = shared.left(&limit).await;
    // A unit comes back every 360 ms by itself.
    assert!((9_500..=9_502).contains(&back), "{back} are left");
}

#[tokio::test]
async fn a_process_that_is_killed_loses_what_it_held_until_that_has_come_back() {
    let shared = Shared::new();
    let limit = busy(1_000);
    let instance = shared.instance();
    for _ in 0..300 {
        assert!(check(&instance, &limit).await.is_allowed());
        settle().await;
    }
    drop(instance);
    let left = shared.left(&limit).await;
    assert!((600..700).contains(&left), "{left} are left of 700");
    shared.clock.advance(Duration::from_secs(3_600));
    assert_eq!(shared.left(&limit).await, 1_000);
}

#[tokio::test]
async fn a_request_that_another_limit_denies_uses_nothing_that_is_held() {
    let shared = Shared::new();
    let instance = shared.instance();
    let (limit, few) = (busy(1_000), Limit::new("few", Quota::per_hour(10)));
    for _ in 0..200 {
        assert!(check(&instance, &limit).await.is_allowed());
        settle().await;
    }
    let both = || instance.check_all([(&limit, "k"), (&few, "k")]);
    for taken in 1..=10 {
        let decision = both().await.unwrap();
        assert!(decision.is_allowed(), "{taken}");
        settle().await;
    }
    for _ in 0..500 {
        let decision = both().await.unwrap();
        assert_eq!(decision.binding().unwrap().name(), "few");
        assert!(!decision.is_allowed());
        settle().await;
    }
    instance.shutdown().await;
    assert_eq!(shared.left(&limit).await, 790);
}

#[tokio::test]
async fn a_request_whose_store_fails_uses_nothing_that_is_held() {
    let shared = Shared::new();
    let instance = shared.instance();
    let (limit, few) = (busy(1_000), Limit::new("few", Quota::per_hour(10)));
    for _ in 0..200 {
        assert!(check(&instance, &limit).await.is_allowed());
        settle().await;
    }
    shared.store.break_(Broken::Later(StoreErrorKind::Timeout));
    for _ in 0..50 {
        let both = instance.check_all([(&limit, "k"), (&few, "k")]).await;
        assert_eq!(both.unwrap_err().kind(), StoreErrorKind::Timeout);
    }
    // What is here is still admitted.
    assert_eq!(check(&instance, &limit).await.source(), Source::Lease);
    shared.store.mend();
    instance.shutdown().await;
    assert_eq!(shared.left(&limit).await, 799);
}

#[tokio::test]
async fn a_caller_that_goes_away_harms_nobody() {
    let shared = Shared::new();
    let instance = shared.instance();
    let limit = busy(100_000);
    let mut away = 0;
    for at in 0..2_000 {
        let check = instance.check(&limit, "k");
        if at % 3 == 0 {
            // Dropped before, while or after the store is asked.
            away += 1;
            let _ = tokio::time::timeout(Duration::ZERO, check).await;
        } else {
            assert!(check.await.unwrap().is_allowed());
        }
    }
    settle().await;
    instance.shutdown().await;
    let left = shared.left(&limit).await;
    assert!((98_000..=98_000 + away).contains(&left), "{left} are left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_at_once_are_all_answered_and_all_units_are_accounted_for() {
    const CALLERS: u64 = 32;
    const CALLS: u64 = 3_000;
    let shared = Shared::new();
    let instance = shared.instance();
    let limit = busy(1_000_000).cost(1);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let (instance, limit) = (instance.clone(), limit.clone());
        callers.spawn(async move {
            for _ in 0..CALLS {
                // An answer for a request whose units came from elsewhere meanwhile is one, too.
                assert!(check(&instance, &limit).await.is_allowed());
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    instance.shutdown().await;
    assert_eq!(shared.left(&limit).await, 1_000_000 - CALLERS * CALLS);
}

#[tokio::test]
async fn what_was_given_back_or_reset_is_seen() {
    let shared = Shared::new();
    let instance = shared.instance();
    let limit = busy(1_000);
    let mut last = None;
    for _ in 0..400 {
        last = Some(check(&instance, &limit).await);
        settle().await;
    }
    let last = last.unwrap();
    assert_eq!(last.source(), Source::Lease);
    instance.refund(&last).await.unwrap();
    instance.refund(&last).await.unwrap();
    let again = check(&instance, &limit).await;
    assert!(again.remaining().unwrap() >= 599);
    instance.shutdown().await;
    assert_eq!(shared.left(&limit).await, 600);

    let instance = shared.instance();
    for _ in 0..200 {
        check(&instance, &limit).await;
        settle().await;
    }
    instance.reset(&limit, "k").await.unwrap();
    assert_eq!(shared.left(&limit).await, 1_000);
    // What was held before is gone with it.
    assert_eq!(check(&instance, &limit).await.source(), Source::Memory);
}

#[tokio::test]
async fn costs_of_several_units_are_served_whole() {
    let shared = Shared::new();
    let instance = shared.instance();
    let limit = busy(1_000).cost(7);
    let mut admitted = 0;
    while check(&instance, &limit).await.is_allowed() {
        admitted += 7;
        settle().await;
    }
    assert_eq!(admitted, 994);
    let single = limit.cost(1);
    for _ in 0..6 {
        assert!(check(&instance, &single).await.is_allowed());
    }
    assert!(!check(&instance, &single).await.is_allowed());
}

#[test]
fn what_cannot_be_leased_is_refused() {
    let lockout = Lockout::new(Duration::from_secs(3_600));
    let limit = || Limit::new("l", Quota::per_minute(50));
    for (limit, fault) in [
        (limit().lease(51), "of 51 units: it must be at most the burst, 50"),
        (
            limit().algorithm(Algorithm::SlidingLog).lease(5),
            "beside an algorithm that cannot: token buckets, fixed windows and the calendar can",
        ),
        (
            limit().algorithm(Algorithm::SlidingCounter).lease(5),
            "beside an algorithm that cannot: token buckets, fixed windows and the calendar can",
        ),
        (limit().lockout(lockout).lease(5), "beside a lockout, which has to see every request"),
        (limit().shadow().lease(5), "and is a shadow, which need not be fast"),
    ] {
        let refused = Policy::new("p").limit(tollgate::Global, limit).build().unwrap_err();
        assert_eq!(refused.to_string(), format!("the limit `l` has a lease {fault}"));
    }
    for limit in [
        limit().lease(50),
        limit().lease(0).shadow(),
        Limit::calendar("l", 50, Calendar::Day).lease(5),
    ] {
        Policy::new("p").limit(tollgate::Global, limit).build().unwrap();
    }
}
