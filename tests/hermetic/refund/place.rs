//! Where a refund goes, and whose it is.

use std::convert::Infallible;

use http::{Request, Response, StatusCode};
use tollgate::{
    Decision, Global, Key, Limit, Limiter, OnFailure, Outcome, Policy, Quota, RateLimitLayer,
    RequestHead, Ruling, Source, StoreErrorKind,
};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::tries;
use crate::support::{
    Broken, Flaky, Later, Log, Probe, left, limiters, memory, policy, secs, send,
};

fn all() -> Key {
    Key::new("global", "all")
}

async fn admitted(limiter: &Limiter, policy: &Policy) -> Decision {
    let request = Request::new(());
    match limiter.decide(policy, RequestHead::new(&request)).await {
        Ruling::Admit(decision) => decision,
        Ruling::Reject(rejection) => panic!("{rejection:?}"),
    }
}

fn local() -> Policy {
    let policy = Policy::new("api").limit(Global, tries(10).cost(5));
    policy.on_failure(OnFailure::Local { share: 0.5 }).build().unwrap()
}

#[tokio::test]
async fn what_the_fallback_charged_it_gets_back_also_while_the_store_answers() {
    for mended in [false, true] {
        let store = Flaky::broken(memory().0, Broken::Later(StoreErrorKind::Timeout));
        let limiter = Limiter::builder(store.clone()).fallback(memory().0).build();
        let decision = admitted(&limiter, &local()).await;
        assert_eq!((decision.source(), decision.remaining()), (Source::Fallback, Some(0)));
        if mended {
            store.mend();
        }
        let asked = store.asked();
        decision.refund().await.unwrap();
        assert_eq!(store.asked(), asked);
        store.break_(Broken::Now(StoreErrorKind::Timeout));
        assert_eq!(admitted(&limiter, &local()).await.source(), Source::Fallback);
    }
}

#[tokio::test]
async fn what_the_store_charged_it_gets_back_and_not_the_fallback() {
    let store = Flaky::new(memory().0);
    let limiter = Limiter::builder(store.clone()).fallback(memory().0).build();
    let policy = local();
    let decision = admitted(&limiter, &policy).await;
    store.break_(Broken::Now(StoreErrorKind::Timeout));
    admitted(&limiter, &policy).await;
    store.mend();
    decision.refund().await.unwrap();
    assert_eq!(left(&limiter, policy.limit("tries").unwrap(), all()).await, 10);
    store.break_(Broken::Now(StoreErrorKind::Timeout));
    let request = Request::new(());
    let ruling = limiter.decide(&policy, RequestHead::new(&request)).await;
    assert!(matches!(ruling, Ruling::Reject(_)), "the fallback gave back what it did not");
}

#[tokio::test]
async fn what_the_fallback_answers_a_handle_is_no_sign_of_life_of_the_store() {
    let (store, clock) = memory();
    let store = Flaky::broken(store, Broken::Now(StoreErrorKind::Timeout));
    let fallback = tollgate::MemoryStore::builder().clock(clock.clone()).build();
    let limiter = Limiter::builder(store).fallback(fallback).build();
    let log = Log::start();
    let decision = admitted(&limiter, &local()).await;
    clock.advance(secs(9));
    decision.look().await.unwrap();
    decision.charge("tries", 1).await.unwrap();
    decision.refund().await.unwrap();
    assert_eq!(log.notices().len(), 1, "{:?}", log.notices());
}

#[tokio::test]
async fn requests_that_nobody_charged_have_nothing_to_give_back() {
    let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Timeout));
    let limiter = Limiter::new(store.clone());
    let open = Policy::new("api").limit(Global, tries(10)).build().unwrap();
    let decision = admitted(&limiter, &open).await;
    assert_eq!(decision.outcome(), Outcome::FailedOpen);
    decision.refund().await.unwrap();
    decision.refund_units("tries", u64::MAX).await.unwrap();
    assert_eq!(store.asked(), 1);
}

#[tokio::test]
async fn a_handler_gives_back_what_the_layers_outside_have_charged_once() {
    for (limiter, _clock) in limiters() {
        let policy = policy("api", [tries(9)]);
        let layer = RateLimitLayer::with_policy(policy.clone(), &limiter);
        let handler = service_fn(async |request: Request<()>| {
            let decision: &Decision = request.extensions().get().unwrap();
            decision.refund().await.unwrap();
            decision.refund().await.unwrap();
            decision.refund_units("tries", u64::MAX).await.unwrap();
            Ok::<_, Infallible>(Response::new(()))
        });
        // The inner one only looks, at what the outer one has charged.
        let mut service = layer.layer(layer.layer(handler));
        send(&mut service).await;
        assert_eq!(left(&limiter, policy.limit("tries").unwrap(), all()).await, 9);
    }
}

#[tokio::test]
async fn a_layer_outside_gives_back_what_a_failed_request_was_charged() {
    for (limiter, _clock) in limiters() {
        let policy = policy("api", [tries(4), Limit::new("hourly", Quota::per_hour(9)).cost(2)]);
        for (status, remaining) in [
            (StatusCode::OK, [3, 7]),
            (StatusCode::INTERNAL_SERVER_ERROR, [3, 7]),
            (StatusCode::BAD_GATEWAY, [3, 7]),
        ] {
            let layer = RateLimitLayer::with_policy(policy.clone(), &limiter);
            let service = layer.layer(Probe::answering(status, &[]));
            let mut service = service.map_future(async |response| {
                let response: Response<_> = Result::<_, Infallible>::unwrap(response.await);
                if response.status().is_server_error() {
                    let decision: &Decision = response.extensions().get().unwrap();
                    decision.refund().await.unwrap();
                }
                Ok::<_, Infallible>(response)
            });
            let response = service.ready().await.unwrap().call(Request::new(())).await.unwrap();
            assert_eq!(response.status(), status);
            let limits = [policy.limit("tries").unwrap(), policy.limit("hourly").unwrap()];
            let mut seen = [0; 2];
            for (seen, limit) in seen.iter_mut().zip(limits) {
                *seen = left(&limiter, limit, all()).await;
            }
            assert_eq!(seen, remaining, "{status}");
        }
    }
}

#[tokio::test]
async fn what_a_handle_charged_more_is_given_back_by_the_answer_to_that() {
    for (limiter, _clock) in limiters() {
        let policy = policy("api", [tries(9)]);
        let limit = policy.limit("tries").unwrap();
        let first = admitted(&limiter, &policy).await;
        let more = first.charge("tries", 4).await.unwrap();
        assert_eq!(left(&limiter, limit, all()).await, 4);
        more.refund().await.unwrap();
        assert_eq!(left(&limiter, limit, all()).await, 8);
        first.refund().await.unwrap();
        assert_eq!(left(&limiter, limit, all()).await, 9);
    }
}

#[tokio::test]
async fn any_limiter_gives_back_to_the_store_that_was_charged() {
    let (limiter, other) = (Limiter::new(Later(memory().0)), Limiter::new(memory().0));
    let limit = tries(9);
    let decision = limiter.check(&limit, "user").await.unwrap();
    other.check(&limit, "user").await.unwrap();
    other.refund(&decision).await.unwrap();
    assert_eq!(left(&limiter, &limit, "user").await, 9);
    assert_eq!(left(&other, &limit, "user").await, 8);
}
