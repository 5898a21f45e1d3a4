//! A process that is late hears late what the store has answered in time.

use std::time::Duration;

use tollgate::{BreakerState, StoreErrorKind};

use super::{MILLI, Rig, settle};
use crate::support::{Broken, secs};

/// Ten rounds of ten calls that take `taken` each, for `late` of which the process was late.
async fn rounds(rig: &Rig, taken: Duration, late: Duration) -> BreakerState {
    for _ in 0..10 {
        let calls = rig.begin(10).await;
        pass(rig, taken, late);
        rig.held.answer(10);
        settle().await;
        if rig.is_open() {
            break;
        }
        assert!(calls.iter().all(|call| call.is_finished()));
        rig.clock.advance(150 * MILLI);
    }
    rig.state()
}

fn pass(rig: &Rig, time: Duration, late: Duration) {
    rig.clock.advance(time);
    rig.held.late(late);
}

#[tokio::test]
async fn the_store_is_as_slow_as_it_is_without_that() {
    let table = [
        (20, 0, BreakerState::Closed),
        (21, 0, BreakerState::Open),
        (90, 70, BreakerState::Closed),
        (91, 70, BreakerState::Open),
        (5_000, 4_980, BreakerState::Closed),
        (5_000, 5_000, BreakerState::Closed),
        // More of it than of time: part of it was of before.
        (90, 300, BreakerState::Closed),
    ];
    for (taken, late, state) in table {
        assert_eq!(rounds(&Rig::new(), taken * MILLI, late * MILLI).await, state, "{taken} {late}");
    }
}

#[tokio::test]
async fn lateness_before_a_call_does_not_count_for_it() {
    let rig = Rig::new();
    rig.held.late(secs(1_000));
    assert_eq!(rounds(&rig, 30 * MILLI, Duration::ZERO).await, BreakerState::Open);
}

/// Calls that time out after 100 ms, one after the other, until the breaker opens, which it does not
/// after 200. Between them, others are answered, or nobody is.
async fn timeouts(late: Duration, answers: bool) -> Option<usize> {
    let rig = Rig::new();
    for calls in 1..=200 {
        rig.store.break_(Broken::Later(StoreErrorKind::Timeout));
        let call = rig.begin(1).await;
        pass(&rig, 100 * MILLI, late);
        rig.held.answer(1);
        settle().await;
        assert!(call[0].is_finished());
        rig.store.mend();
        if rig.is_open() {
            return Some(calls);
        }
        if answers {
            rig.ask().await.unwrap();
        }
    }
    None
}

#[tokio::test]
async fn timeouts_for_which_it_was_late_at_least_half_of_the_time_are_its_own() {
    assert_eq!(timeouts(50 * MILLI, true).await, None);
    assert!(timeouts(49 * MILLI, true).await.is_some());
}

#[tokio::test]
async fn a_store_that_answers_nobody_fails_also_if_the_process_is_late() {
    assert_eq!(timeouts(Duration::ZERO, false).await, Some(5));
    // 5 ms of each call are silence of the store: more than 100 ms after 21, and then five in a row.
    assert_eq!(timeouts(95 * MILLI, false).await, Some(25));
    assert_eq!(timeouts(100 * MILLI, false).await, None);
}

/// A breaker that is open, and a call that is to find out, answered after a second for which the process
/// was late.
async fn probe(rig: &Rig, broken: Option<Broken>) -> BreakerState {
    rig.open().await;
    rig.clock.advance(secs(1));
    if let Some(how) = broken {
        rig.store.break_(how);
    }
    let call = rig.begin(1).await;
    assert_eq!(rig.state(), BreakerState::HalfOpen);
    pass(rig, secs(1), 990 * MILLI);
    rig.held.answer(1);
    settle().await;
    assert!(call[0].is_finished());
    rig.store.mend();
    rig.state()
}

#[tokio::test]
async fn an_answer_that_comes_late_by_that_closes_the_breaker() {
    assert_eq!(probe(&Rig::new(), None).await, BreakerState::Closed);
}

#[tokio::test]
async fn who_times_out_by_that_leaves_it_to_the_next_to_find_out() {
    let rig = Rig::new();
    let timeout = Broken::Later(StoreErrorKind::Timeout);
    assert_eq!(probe(&rig, Some(timeout)).await, BreakerState::Open);
    rig.ask().await.expect("it asks at once");
    assert_eq!(rig.state(), BreakerState::Closed);
}
