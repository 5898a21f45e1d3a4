//! Whoever waits for others of its own process does not wait for the store.

use std::time::Duration;

use tollgate::{BreakerState, StoreErrorKind};

use super::{MILLI, Rig, settle};
use crate::support::Broken;

/// Has `calls` come at once, ten times, and the store answer one part of them after the other: in all
/// of them, `taken`.
async fn floods(rig: &Rig, calls: usize, parts: usize, taken: Duration) -> BreakerState {
    for _ in 0..10 {
        let waiting = rig.begin(calls).await;
        for _ in 0..parts {
            rig.clock.advance(taken / u32::try_from(parts).unwrap());
            rig.held.answer(calls / parts);
            settle().await;
        }
        if rig.is_open() {
            break;
        }
        assert!(waiting.iter().all(|call| call.is_finished()));
        rig.clock.advance(100 * MILLI);
    }
    rig.state()
}

#[tokio::test]
async fn a_long_queue_that_the_store_works_off_is_not_slow() {
    assert_eq!(floods(&Rig::new(), 2_000, 20, 80 * MILLI).await, BreakerState::Closed);
}

#[tokio::test]
async fn a_short_queue_that_takes_as_long_is() {
    assert_eq!(floods(&Rig::new(), 200, 20, 80 * MILLI).await, BreakerState::Open);
}

#[tokio::test]
async fn timeouts_after_such_a_wait_are_no_failures_of_the_store() {
    for (answered, state) in [(1_000, BreakerState::Closed), (100, BreakerState::Open)] {
        let rig = Rig::new();
        for _ in 0..10 {
            rig.store.break_(Broken::Later(StoreErrorKind::Timeout));
            let failing = rig.begin(1_000).await;
            rig.store.mend();
            // All this time the store answers others.
            for _ in 0..answered {
                rig.ask().await.unwrap();
            }
            rig.clock.advance(100 * MILLI);
            rig.held.answer(1_000);
            settle().await;
            assert!(failing.iter().all(|call| call.is_finished()));
            if rig.is_open() {
                break;
            }
        }
        assert_eq!(rig.state(), state, "{answered}");
    }
}
