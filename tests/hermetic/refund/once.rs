//! A charge is given back once, whatever goes wrong.

use std::{sync::Arc, time::Duration};

use tokio::sync::Barrier;
use tollgate::{Limiter, StoreErrorKind};

use super::{by, left, take, tries};
use crate::support::{ALGORITHMS, Broken, Flaky, Later, Log, limiters, memory};

const DOWN: Broken = Broken::Now(StoreErrorKind::Timeout);

#[tokio::test]
async fn a_second_refund_gives_nothing() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = by(algorithm, 9);
            take(&limiter, &limit, 5).await;
            clock.advance(Duration::from_micros(1));
            let decision = take(&limiter, &limit, 2).await;
            for _ in 0..3 {
                decision.refund().await.unwrap();
                // Clones are one decision.
                limiter.refund(&decision.clone()).await.unwrap();
                assert_eq!(left(&limiter, &limit).await, 4, "{algorithm:?}");
            }
        }
    }
}

#[tokio::test]
async fn each_decision_gives_back_its_own() {
    for algorithm in ALGORITHMS {
        for (limiter, _clock) in limiters() {
            let limit = by(algorithm, 9);
            // At one moment.
            let decisions = [take(&limiter, &limit, 5).await, take(&limiter, &limit, 2).await];
            for (decision, remaining) in decisions.iter().zip([7, 9]) {
                decision.refund().await.unwrap();
                assert_eq!(left(&limiter, &limit).await, remaining, "{algorithm:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_thousand_refunds_at_once_give_back_once() {
    for limiter in [Limiter::new(memory().0), Limiter::new(Later(memory().0))] {
        let limit = tries(5_000);
        take(&limiter, &limit, 3_000).await;
        let decision = take(&limiter, &limit, 1_000).await;
        let start = Arc::new(Barrier::new(1_000));
        let refunds = (0..1_000).map(|at| {
            let (decision, start) = (decision.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                match at % 3 {
                    0 => decision.refund().await.unwrap(),
                    units => decision.refund_units("tries", units * 7).await.unwrap(),
                }
            })
        });
        for refund in Vec::from_iter(refunds) {
            refund.await.unwrap();
        }
        assert_eq!(left(&limiter, &limit).await, 2_000);
    }
}

#[tokio::test]
async fn a_refund_that_failed_is_an_error_and_is_not_tried_again() {
    for kind in [StoreErrorKind::Timeout, StoreErrorKind::Unreachable, StoreErrorKind::ReadOnly] {
        let store = Flaky::new(memory().0);
        let limiter = Limiter::new(store.clone());
        let limit = tries(5);
        let decision = take(&limiter, &limit, 3).await;
        store.break_(Broken::Now(kind));
        let asked = store.asked();
        assert_eq!(decision.refund().await.unwrap_err().kind(), kind);
        assert_eq!(store.asked(), asked + 1);
        // It may have been given back all the same: a second time might give it back twice.
        store.mend();
        decision.refund().await.unwrap();
        decision.refund_units("tries", 1).await.unwrap();
        assert_eq!(store.asked(), asked + 1);
        assert_eq!(left(&limiter, &limit).await, 2);
    }
}

#[tokio::test]
async fn a_part_that_failed_leaves_the_rest() {
    let store = Flaky::new(memory().0);
    let limiter = Limiter::new(store.clone());
    let limit = tries(5);
    let decision = take(&limiter, &limit, 5).await;
    store.break_(DOWN);
    decision.refund_units("tries", 2).await.unwrap_err();
    store.mend();
    decision.refund().await.unwrap();
    assert_eq!(left(&limiter, &limit).await, 3);
}

#[tokio::test]
async fn a_refund_that_was_dropped_before_it_began_can_still_be_made() {
    for (limiter, _clock) in limiters() {
        let limit = tries(5);
        let decision = take(&limiter, &limit, 5).await;
        drop(decision.refund());
        drop(limiter.refund(&decision));
        assert_eq!(left(&limiter, &limit).await, 0);
        decision.refund().await.unwrap();
        assert_eq!(left(&limiter, &limit).await, 5);
    }
}

#[tokio::test]
async fn a_store_that_fails_at_refunds_is_logged_once_as_at_charges() {
    let log = Log::start();
    let store = Flaky::new(memory().0);
    let limiter = Limiter::new(store.clone());
    let decisions = [take(&limiter, &tries(9), 1).await, take(&limiter, &tries(9), 1).await];
    store.break_(DOWN);
    for decision in decisions {
        decision.refund().await.unwrap_err();
    }
    assert_eq!(log.notices().len(), 1, "{:?}", log.notices());
}

#[tokio::test]
async fn nothing_to_give_back_asks_no_store_and_ends_no_outage() {
    let (store, clock) = memory();
    let fallback = tollgate::MemoryStore::builder().clock(clock.clone()).build();
    let store = Flaky::new(store);
    let limiter = Limiter::with_fallback(store.clone(), fallback);
    let limit = tries(9);
    let decision = take(&limiter, &limit, 1).await;
    decision.refund().await.unwrap();
    let asked = store.asked();
    store.break_(DOWN);
    let log = Log::start();
    limiter.check(&limit, "user").await.unwrap_err();
    clock.advance(Duration::from_secs(9));
    decision.refund().await.unwrap();
    decision.refund_units("tries", 0).await.unwrap();
    assert_eq!(store.asked(), asked + 1);
    assert_eq!(log.notices().len(), 1, "{:?}", log.notices());
}
