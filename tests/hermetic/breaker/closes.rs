//! How it finds out that the store answers again.

use std::time::Duration;

use tollgate::{Breaker, BreakerState, Clock as _, StoreErrorKind, Timestamp};

use super::{MILLI, Rig, settle};
use crate::support::{Broken, secs};

/// Longer than any pause.
const PAUSE: Duration = Duration::from_millis(500);

#[tokio::test]
async fn nobody_asks_before_the_pause_is_over_and_one_answer_closes_it() {
    for _ in 0..100 {
        let rig = Rig::new();
        rig.open().await;
        let asked = rig.store.asked();
        let pause = rig.pause().await;
        assert!((50 * MILLI..=100 * MILLI).contains(&pause), "{pause:?}");
        assert_eq!((rig.store.asked(), rig.state()), (asked + 1, BreakerState::Closed));
        rig.ask().await.unwrap();
        assert_eq!(rig.store.asked(), asked + 2);
    }
}

#[tokio::test]
async fn one_asks_at_a_time_and_the_others_are_told_at_once() {
    let rig = Rig::new();
    rig.open().await;
    rig.clock.advance(PAUSE);
    let asked = rig.store.asked();
    let calls = rig.begin(100).await;
    assert_eq!((rig.store.asked(), rig.state()), (asked + 1, BreakerState::HalfOpen));
    assert_eq!(calls.iter().filter(|call| call.is_finished()).count(), 99);
    rig.clock.advance(secs(1));
    assert_eq!(rig.ask().await, Err(StoreErrorKind::BreakerOpen));
    rig.clock.set(Timestamp::from_micros(rig.clock.now().as_micros() - 999_000));
    rig.held.answer(1);
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    let turned_back = answers.iter().filter(|answer| answer.is_err());
    assert!(turned_back.clone().all(|answer| *answer == Err(StoreErrorKind::BreakerOpen)));
    assert_eq!(turned_back.count(), 99);
    assert_eq!(rig.state(), BreakerState::Closed);
    rig.ask().await.unwrap();
}

#[tokio::test]
async fn while_the_store_fails_the_pauses_grow_to_their_bound() {
    let rig = Rig::with(Breaker::default().open_for(40 * MILLI, 200 * MILLI));
    rig.open().await;
    rig.store.break_(Broken::Now(StoreErrorKind::Timeout));
    let mut seen = Vec::new();
    for longest in [40, 80, 160, 200, 200, 200, 200, 200, 200, 200] {
        let pause = rig.pause().await;
        assert!((longest / 2 * MILLI..=longest * MILLI).contains(&pause), "{pause:?}");
        assert_eq!(rig.state(), BreakerState::Open);
        seen.push(pause);
    }
    seen[3..].sort();
    seen.dedup();
    assert!(seen.len() > 5, "they are not all alike: {seen:?}");
    rig.store.mend();
    assert!(rig.pause().await <= 200 * MILLI);
    assert_eq!(rig.state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_store_that_comes_and_goes_is_asked_ever_less_until_it_has_been_well_for_a_while() {
    let rig = Rig::with(Breaker::default().open_for(50 * MILLI, secs(2)));
    for longest in [50, 100, 200, 400] {
        rig.open().await;
        let pause = rig.pause().await;
        assert!((longest / 2 * MILLI..=longest * MILLI).contains(&pause), "{pause:?}");
        rig.clock.advance(secs(1));
    }
    rig.clock.advance(secs(1));
    rig.open().await;
    assert!(rig.pause().await <= 50 * MILLI);
}

#[tokio::test]
async fn a_caller_that_goes_away_while_it_asks_leaves_that_to_the_next() {
    let rig = Rig::new();
    rig.open().await;
    rig.clock.advance(PAUSE);
    for _ in 0..10 {
        let asked = rig.store.asked();
        let calls = rig.begin(1).await;
        assert_eq!((rig.store.asked(), rig.state()), (asked + 1, BreakerState::HalfOpen));
        calls[0].abort();
        settle().await;
        assert_eq!(rig.state(), BreakerState::Open);
    }
    rig.ask().await.unwrap();
    assert_eq!(rig.state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_caller_that_never_comes_back_holds_up_nobody_for_ever() {
    let rig = Rig::new();
    rig.open().await;
    rig.clock.advance(PAUSE);
    let calls = rig.begin(1).await;
    rig.clock.advance(Duration::from_millis(4_999));
    assert_eq!(rig.ask().await, Err(StoreErrorKind::BreakerOpen));
    rig.clock.advance(MILLI);
    let asked = rig.store.asked();
    let others = rig.begin(1).await;
    assert_eq!((rig.store.asked(), rig.state()), (asked + 1, BreakerState::HalfOpen));
    // What the first one hears, at last, is no news.
    calls[0].abort();
    settle().await;
    assert_eq!(rig.state(), BreakerState::HalfOpen);
    rig.held.answer(1);
    settle().await;
    assert!(others[0].is_finished());
    assert_eq!(rig.state(), BreakerState::Closed);
}

#[tokio::test]
async fn an_answer_that_comes_late_has_another_try_at_once_and_no_third() {
    let rig = Rig::new();
    rig.open().await;
    rig.clock.advance(PAUSE);
    for _ in 0..2 {
        let calls = rig.begin(1).await;
        assert_eq!(rig.state(), BreakerState::HalfOpen);
        rig.clock.advance(21 * MILLI);
        rig.held.answer(1);
        settle().await;
        assert!(calls[0].is_finished());
        assert_eq!(rig.state(), BreakerState::Open);
    }
    let pause = rig.pause().await;
    assert!(pause >= 100 * MILLI, "{pause:?}");
    assert_eq!(rig.state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_full_queue_is_no_news_and_a_complaint_about_one_key_shows_that_somebody_is_there() {
    let rig = Rig::new();
    rig.open().await;
    rig.clock.advance(PAUSE);
    rig.fail(StoreErrorKind::Overloaded, 3).await;
    assert_eq!(rig.state(), BreakerState::Open);
    // Seen here, before anybody was asked.
    rig.fail(StoreErrorKind::Misconfigured, 3).await;
    assert_eq!(rig.state(), BreakerState::Open);
    rig.store.break_(Broken::Later(StoreErrorKind::Misconfigured));
    assert_eq!(rig.ask().await, Err(StoreErrorKind::Misconfigured));
    assert_eq!(rig.state(), BreakerState::Closed);
}

#[tokio::test]
async fn what_was_asked_before_it_opened_does_not_close_it_nor_the_other_way_round() {
    let rig = Rig::new();
    let before = rig.begin(20).await;
    rig.open().await;
    rig.held.answer(10);
    settle().await;
    assert_eq!(rig.state(), BreakerState::Open);
    rig.clock.advance(PAUSE);
    rig.ask().await.unwrap();
    assert_eq!(rig.state(), BreakerState::Closed);

    rig.store.break_(Broken::Later(StoreErrorKind::Timeout));
    let failing = rig.begin(20).await;
    rig.store.mend();
    rig.open().await;
    rig.clock.advance(PAUSE);
    rig.ask().await.unwrap();
    rig.held.answer(30);
    for call in before {
        call.await.unwrap().unwrap();
    }
    for call in failing {
        assert_eq!(call.await.unwrap(), Err(StoreErrorKind::Timeout));
    }
    assert_eq!(rig.state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_clock_that_steps_back_does_not_keep_it_open() {
    let rig = Rig::new();
    rig.open().await;
    rig.clock.set(Timestamp::from_micros(1_000_000));
    rig.ask().await.unwrap();
    assert_eq!(rig.state(), BreakerState::Closed);
    rig.open().await;
}
