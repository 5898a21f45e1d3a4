//! While it is open, nobody waits for the store, and nobody asks it.

use http::StatusCode;
use tollgate::{
    Breaker, Global, Limit, ManualClock, OnFailure, Policy, Quota, Rejection, RequestHead, Source,
    StoreErrorKind,
};

use super::{MILLI, Rig, over};
use crate::support::{Client, Remote, number, secs};

fn policy(on_failure: OnFailure) -> Policy {
    let limit = Limit::new("tries", Quota::per_minute(4));
    Policy::new("api").limit(Global, limit).on_failure(on_failure).build().unwrap()
}

#[tokio::test]
async fn requests_meet_the_policy_at_once() {
    let rig = Rig::new();
    rig.open().await;
    let asked = rig.store.asked();
    let mut open = Client::sharing(&rig.limiter, policy(OnFailure::Allow));
    let mut closed = Client::sharing(&rig.limiter, policy(OnFailure::Deny));
    let mut local = Client::sharing(&rig.limiter, policy(OnFailure::Local { share: 0.5 }));
    for _ in 0..100 {
        assert_eq!(open.send().await.status(), StatusCode::OK);
        let denied = closed.send().await;
        assert_eq!(denied.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!((1..=3).contains(&number(&denied, "retry-after").unwrap()));
        let Some(Rejection::StoreFailed(kind)) = denied.extensions().get() else {
            panic!("no reason in the extensions");
        };
        assert_eq!(*kind, StoreErrorKind::BreakerOpen);
    }
    let (passed, denied) = local.exhaust().await;
    assert_eq!((passed, denied.status()), (2, StatusCode::TOO_MANY_REQUESTS));
    assert_eq!(rig.ask().await, Err(StoreErrorKind::BreakerOpen));
    assert_eq!(rig.store.asked(), asked);
}

#[tokio::test]
async fn nothing_else_goes_to_the_store_either() {
    let rig = Rig::new();
    let limit = Limit::new("tries", Quota::per_minute(4));
    let decision = rig.limiter.check(&limit, "somebody").await.unwrap();
    rig.open().await;
    let asked = rig.store.asked();
    let kinds = [
        decision.look().await.map(drop),
        decision.charge("tries", 1).await.map(drop),
        decision.refund().await,
        rig.limiter.look(&limit, "somebody").await.map(drop),
        rig.limiter.reset(&limit, "somebody").await,
    ];
    for answer in kinds {
        assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::BreakerOpen);
    }
    assert_eq!(rig.store.asked(), asked);
}

#[tokio::test]
async fn what_is_known_here_is_decided_here_all_the_same() {
    let clock = ManualClock::new();
    let store = Remote::new(clock.clone());
    let limiter = over(store.clone(), &clock).remember_denials(secs(60)).build();
    let denied = Limit::new("denied", Quota::per_day(1));
    let leased = Limit::new("leased", Quota::per_day(1_000)).lease(100);
    for limit in [&denied, &denied, &leased, &leased, &leased, &leased] {
        limiter.check(limit, "somebody").await.unwrap();
    }
    store.down(true);
    let other = Limit::new("other", Quota::per_day(1));
    for _ in 0..5 {
        limiter.check(&other, "somebody").await.unwrap_err();
        clock.advance(3 * MILLI);
    }
    store.asked();
    let decision = limiter.check(&denied, "somebody").await.unwrap();
    assert_eq!((decision.is_allowed(), decision.source()), (false, Source::Cache));
    let decision = limiter.check(&leased, "somebody").await.unwrap();
    assert_eq!((decision.is_allowed(), decision.source()), (true, Source::Lease));
    assert_eq!(
        limiter.check(&leased, "else").await.unwrap_err().kind(),
        StoreErrorKind::BreakerOpen
    );
    // Nor is there a task to wait for.
    let ahead = Limit::new("ahead", Quota::per_day(1_000)).lease(100);
    let policy = Policy::new("api").limit(Global, ahead).build().unwrap();
    let request = http::Request::new(());
    assert!(limiter.decide(&policy, RequestHead::new(&request)).try_now().is_ok());
    assert_eq!(store.asked(), 0);
}

#[tokio::test]
async fn without_a_breaker_each_request_asks() {
    let rig = Rig::new();
    let limiter = over(rig.store.clone(), &rig.clock).breaker(None).build();
    rig.store.break_(crate::support::Broken::Now(StoreErrorKind::Timeout));
    for _ in 0..100 {
        assert_eq!(super::ask(&limiter).await, Err(StoreErrorKind::Timeout));
        rig.clock.advance(10 * MILLI);
    }
    assert_eq!(rig.store.asked(), 100);
}

/// Also one that comes and goes: what was counted here is kept, and so is the bound.
#[tokio::test]
async fn instances_of_a_store_that_comes_and_goes_admit_a_burst_and_their_shares_of_one() {
    let policy = || {
        let limit = Limit::new("daily", Quota::per_day(40));
        let policy = Policy::new("api").limit(Global, limit);
        policy.on_failure(OnFailure::Local { share: 0.25 }).build().unwrap()
    };
    let (store, clock) = crate::support::memory();
    let store = crate::support::Flaky::new(store);
    let mut instances: Vec<Client> = (0..3)
        .map(|_| {
            let breaker = Breaker::default().open_for(50 * MILLI, 50 * MILLI);
            let limiter = over(store.clone(), &clock).breaker(breaker).build();
            Client::sharing(&limiter, policy())
        })
        .collect();
    let mut admitted = 0;
    for _ in 0..20 {
        for client in &mut instances {
            for _ in 0..30 {
                admitted += u64::from(client.send().await.status() == StatusCode::OK);
                clock.advance(MILLI);
            }
        }
        store.break_(crate::support::Broken::Now(StoreErrorKind::Unreachable));
        for client in &mut instances {
            for _ in 0..30 {
                admitted += u64::from(client.send().await.status() == StatusCode::OK);
                clock.advance(MILLI);
            }
        }
        store.mend();
        clock.advance(50 * MILLI);
    }
    // A burst of 40, and three times a quarter of it; less than a unit comes back meanwhile.
    assert_eq!(admitted, 40 + 3 * 10);
}
