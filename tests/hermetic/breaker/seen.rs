//! What is seen of it: by who asks, and in the log.

use tollgate::{BreakerState, Clock as _, Limiter, StoreErrorKind};
use tracing::Level;

use super::{MILLI, Rig, over};
use crate::support::{Broken, Log, memory, secs};

#[tokio::test]
async fn health_tells_state_failures_and_the_last_of_them() {
    let rig = Rig::new();
    let failures = |kind| rig.limiter.health().failures(kind);
    assert_eq!(rig.limiter.health().last_failure(), None);
    assert!(StoreErrorKind::ALL.iter().all(|kind| failures(*kind) == 0));
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Closed);

    rig.open().await;
    let opened = rig.clock.now();
    rig.clock.advance(MILLI);
    for _ in 0..7 {
        rig.ask().await.unwrap_err();
    }
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Open);
    assert_eq!(failures(StoreErrorKind::Unreachable), 5);
    assert_eq!(failures(StoreErrorKind::BreakerOpen), 7);
    let last = rig.limiter.health().last_failure().unwrap();
    assert_eq!((last.kind, last.at), (StoreErrorKind::Unreachable, opened));

    rig.clock.advance(secs(1));
    let call = rig.begin(1).await;
    assert_eq!(rig.limiter.health().breaker(), BreakerState::HalfOpen);
    rig.held.answer(1);
    call.into_iter().next().unwrap().await.unwrap().unwrap();
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Closed);
    assert_eq!(rig.limiter.health().last_failure(), Some(last));

    for kind in StoreErrorKind::ALL.iter().filter(|kind| **kind != StoreErrorKind::BreakerOpen) {
        let before = failures(*kind);
        rig.fail(*kind, 1).await;
        rig.ask().await.unwrap();
        assert_eq!(failures(*kind), before + 1);
        assert_eq!(rig.limiter.health().last_failure().unwrap().kind, *kind);
    }
}

#[tokio::test]
async fn each_change_is_logged_once() {
    let log = Log::start();
    let rig = Rig::new();
    for changes in 0..3 {
        assert_eq!(log.notices().len(), 3 * changes);
        rig.open().await;
        rig.store.break_(Broken::Now(StoreErrorKind::Unreachable));
        for _ in 0..2_000 {
            rig.ask().await.unwrap_err();
            rig.clock.advance(MILLI);
        }
        rig.store.mend();
        for _ in 0..2_000 {
            let _ = rig.ask().await;
            rig.clock.advance(MILLI);
        }
        assert_eq!(rig.state(), BreakerState::Closed);
    }
    for lines in log.notices().chunks(3) {
        let levels = [Level::WARN, Level::WARN, Level::INFO];
        assert!(lines.iter().zip(levels).all(|(line, level)| line.0 == level), "{lines:?}");
        assert!(lines[0].1.contains("broken on demand"), "{lines:?}");
        assert!(lines[1].1.contains("the breaker opens"), "{lines:?}");
        assert!(lines[2].1.contains("the store answers again"), "{lines:?}");
    }
}

#[tokio::test]
async fn a_store_is_ready_if_it_decides() {
    let (store, _) = memory();
    let limiter = Limiter::new(store);
    for _ in 0..100 {
        limiter.ready().await.unwrap();
    }

    let rig = Rig::new();
    rig.limiter.ready().await.unwrap();
    for kind in StoreErrorKind::ALL {
        rig.store.break_(Broken::Later(*kind));
        assert_eq!(rig.limiter.ready().await.unwrap_err().kind(), *kind);
        assert_eq!(rig.limiter.health().failures(*kind), 1);
    }
}

#[tokio::test]
async fn whether_a_store_is_ready_is_asked_also_while_the_breaker_is_open() {
    let rig = Rig::new();
    rig.open().await;
    let asked = rig.store.asked();
    rig.limiter.ready().await.unwrap();
    assert_eq!((rig.store.asked(), rig.state()), (asked + 1, BreakerState::Open));
}

#[tokio::test]
async fn asking_whether_it_is_ready_leaves_one_state_at_most() {
    let (store, clock) = memory();
    let limiter = over(store.clone(), &clock).build();
    for _ in 0..100 {
        limiter.ready().await.unwrap();
        clock.advance(MILLI);
    }
    assert!(store.len() <= 1);
}
