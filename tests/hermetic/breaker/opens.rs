//! What opens it, and what does not.

use std::time::Duration;

use tollgate::{
    Breaker, BreakerState, Clock as _, Store, StoreErrorKind,
    store::{Hit, Refund, Reply},
};

use super::{MILLI, Rig, ask, over};
use crate::support::{Broken, Flaky, Remote, memory, secs};

/// What the whole store suffers from.
const FAILURES: [StoreErrorKind; 5] = [
    StoreErrorKind::Timeout,
    StoreErrorKind::Unreachable,
    StoreErrorKind::Busy,
    StoreErrorKind::ReadOnly,
    StoreErrorKind::OutOfMemory,
];

#[tokio::test]
async fn so_many_failures_in_a_row() {
    for kind in FAILURES {
        for most in [2, 5, 50] {
            let rig = Rig::with(Breaker::default().failures(most).calls(1_000));
            for _ in 1..most {
                rig.fail(kind, 1).await;
                assert!(!rig.is_open(), "{kind:?}");
            }
            rig.clock.advance(10 * MILLI);
            rig.fail(kind, 1).await;
            assert!(rig.is_open(), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_between_failures_begins_the_count_anew() {
    let rig = Rig::with(Breaker::default().calls(1_000));
    for _ in 0..50 {
        rig.fail(StoreErrorKind::Timeout, 4).await;
        rig.clock.advance(10 * MILLI);
        rig.ask().await.unwrap();
    }
    assert!(!rig.is_open());
}

#[tokio::test]
async fn a_connection_that_breaks_under_many_requests_does_not() {
    let rig = Rig::new();
    for _ in 0..20 {
        rig.fail(StoreErrorKind::Unreachable, 64).await;
        rig.clock.advance(9 * MILLI);
        rig.fail(StoreErrorKind::Unreachable, 64).await;
        for _ in 0..2_000 {
            rig.ask().await.unwrap();
        }
        rig.clock.advance(secs(1));
    }
    assert!(!rig.is_open());
}

#[tokio::test]
async fn what_says_nothing_about_the_store_does_not() {
    let one_key =
        [StoreErrorKind::Overloaded, StoreErrorKind::Misconfigured, StoreErrorKind::Unexpected];
    for kind in one_key {
        let rig = Rig::new();
        for _ in 0..300 {
            rig.fail(kind, 1).await;
            rig.clock.advance(10 * MILLI);
        }
        assert!(!rig.is_open(), "{kind:?}");
        assert_eq!(rig.store.asked(), 300);
    }
}

/// `bad` failures and then `good` answers in each 100 ms, for two seconds.
async fn mixed(rig: &Rig, bad: usize, good: usize) {
    for _ in 0..20 {
        for _ in 0..good {
            rig.ask().await.unwrap();
        }
        for _ in 0..bad {
            if rig.is_open() {
                return;
            }
            rig.fail(StoreErrorKind::Timeout, 1).await;
        }
        if rig.is_open() {
            return;
        }
        rig.clock.advance(100 * MILLI);
    }
}

#[tokio::test]
async fn a_share_of_failures_in_the_window() {
    for (share, bad, good, opens) in [
        (0.5, 2, 2, true),
        (0.5, 2, 3, false),
        (0.1, 1, 9, true),
        (0.1, 1, 10, false),
        (1.0, 3, 1, false),
        // Fewer than 20 calls.
        (0.5, 1, 0, false),
    ] {
        let rig = Rig::with(Breaker::default().share(share).failures(100));
        if (bad, good) == (1, 0) {
            for _ in 0..19 {
                rig.fail(StoreErrorKind::Timeout, 1).await;
                rig.clock.advance(100 * MILLI);
            }
        } else {
            mixed(&rig, bad, good).await;
        }
        assert_eq!(rig.is_open(), opens, "{bad} of {} with {share}", bad + good);
    }
}

#[tokio::test]
async fn what_lies_before_the_window_does_not_count() {
    let rig = Rig::with(Breaker::default().failures(100));
    // Nine of ten for a while, but never twenty in two seconds.
    for _ in 0..20 {
        rig.fail(StoreErrorKind::Timeout, 9).await;
        for _ in 0..2 {
            rig.ask().await.unwrap();
            rig.clock.advance(1_100 * MILLI);
        }
    }
    assert!(!rig.is_open());
    // And what was good before it excuses nothing.
    for _ in 0..10_000 {
        rig.ask().await.unwrap();
    }
    rig.clock.advance(secs(2));
    mixed(&rig, 2, 1).await;
    assert!(rig.is_open());
}

#[tokio::test]
async fn many_failures_in_one_moment_are_no_share_of_a_while() {
    let rig = Rig::with(Breaker::default().failures(10_000));
    rig.fail(StoreErrorKind::Timeout, 500).await;
    assert!(!rig.is_open());
    rig.clock.advance(200 * MILLI);
    rig.fail(StoreErrorKind::Timeout, 500).await;
    assert!(!rig.is_open());
    rig.clock.advance(200 * MILLI);
    rig.fail(StoreErrorKind::Timeout, 1).await;
    assert!(rig.is_open());
}

/// Whether it opens within ten seconds of calls that take so long, one after the other.
async fn opens_when_calls_take(taken: Duration, breaker: Breaker) -> bool {
    let (_, clock) = memory();
    let store = Remote::new(clock.clone());
    let limiter = over(store.clone(), &clock).breaker(breaker).build();
    store.travel([taken / 2, taken / 2]);
    let until = clock.now().saturating_add(secs(10));
    while clock.now() < until {
        if let Err(kind) = ask(&limiter).await {
            assert_eq!(kind, StoreErrorKind::BreakerOpen);
            return true;
        }
        clock.advance(MILLI);
    }
    false
}

#[tokio::test]
async fn answers_that_take_too_long_for_long_enough() {
    let breaker = Breaker::default();
    assert!(!opens_when_calls_take(20 * MILLI, breaker).await);
    assert!(opens_when_calls_take(22 * MILLI, breaker).await);
    assert!(opens_when_calls_take(90 * MILLI, breaker).await);
    assert!(!opens_when_calls_take(90 * MILLI, breaker.slower_than(90 * MILLI)).await);
    assert!(!opens_when_calls_take(90 * MILLI, breaker.slower_than(secs(60))).await);
    assert!(opens_when_calls_take(4 * MILLI, breaker.slower_than(2 * MILLI)).await);
    assert!(!opens_when_calls_take(90 * MILLI, breaker.calls(1_000)).await);
}

#[tokio::test]
async fn a_process_that_stood_still_for_a_moment_does_not() {
    let (_, clock) = memory();
    let store = Remote::new(clock.clone());
    let limiter = over(store.clone(), &clock).build();
    for _ in 0..40 {
        store.travel([300 * MILLI, Duration::ZERO]);
        ask(&limiter).await.unwrap();
        store.travel([Duration::ZERO; 2]);
        for _ in 0..30 {
            ask(&limiter).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_store_in_this_process_has_none() {
    let (store, clock) = memory();
    let broken = Flaky::new(store);
    let limiter = over(Near(broken.clone()), &clock).build();
    broken.break_(Broken::Now(StoreErrorKind::Timeout));
    for _ in 0..100 {
        assert_eq!(ask(&limiter).await, Err(StoreErrorKind::Timeout));
        clock.advance(10 * MILLI);
    }
    assert_eq!(limiter.health().breaker(), BreakerState::Closed);
}

/// A store that says that it is in this process.
#[derive(Debug)]
struct Near(Flaky);

impl Store for Near {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        self.0.acquire(hits)
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        self.0.refund(refunds)
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        self.0.reset(keys)
    }

    fn is_local(&self) -> bool {
        true
    }
}
