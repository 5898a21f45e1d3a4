//! The inner service is called only after admission, on the very instance that was polled ready.
//! Its stand-in panics when it is called without.

use std::{
    pin::{Pin, pin},
    task::Poll,
};

use http::{Request, StatusCode};
use tollgate::{Limit, Limiter, Quota, RateLimitLayer, Store};
use tower::{Layer, Service, ServiceExt};

use crate::support::{Gated, Later, Probe, memory, policy, send};

fn layer(store: impl Store) -> RateLimitLayer {
    let policy = policy("api", [Limit::new("tries", Quota::per_minute(3))]);
    RateLimitLayer::with_policy(policy, &Limiter::new(store))
}

async fn admits_three(store: impl Store) {
    let probe = Probe::new();
    let mut service = layer(store).layer(probe.clone());
    for call in 1..=3 {
        assert_eq!(send(&mut service).await.status(), StatusCode::OK);
        assert_eq!(probe.calls(), call);
    }
    for _ in 0..100 {
        assert_eq!(send(&mut service).await.status(), StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(probe.calls(), 3);
}

#[tokio::test]
async fn a_denied_request_never_reaches_the_service_when_the_store_answers_at_once() {
    admits_three(memory().0).await;
}

#[tokio::test]
async fn a_denied_request_never_reaches_the_service_when_the_store_answers_later() {
    admits_three(Later(memory().0)).await;
}

#[tokio::test]
async fn the_service_is_not_called_before_the_store_has_answered() {
    let (probe, store) = (Probe::new(), Gated::new(memory().0));
    let mut service = layer(store.clone()).layer(probe.clone());
    let mut response = pin!(service.ready().await.unwrap().call(Request::new(())));
    for _ in 0..10 {
        assert!(once(response.as_mut()).await.is_pending());
    }
    assert_eq!(probe.calls(), 0);
    store.open();
    assert_eq!(response.await.unwrap().status(), StatusCode::OK);
    assert_eq!(probe.calls(), 1);
}

#[tokio::test]
async fn requests_that_wait_for_the_store_each_keep_the_instance_that_was_ready_for_them() {
    let (probe, store) = (Probe::new(), Gated::new(memory().0));
    let mut service = layer(store.clone()).layer(probe.clone());
    let first = service.ready().await.unwrap().call(Request::new(()));
    let second = service.ready().await.unwrap().call(Request::new(()));
    store.open();
    store.open();
    let (second, first) = tokio::join!(second, first);
    assert_eq!([first.unwrap().status(), second.unwrap().status()], [StatusCode::OK; 2]);
    assert_eq!(probe.calls(), 2);
}

#[tokio::test]
async fn a_request_that_goes_away_while_it_waits_leaves_the_service_uncalled_and_usable() {
    let (probe, store) = (Probe::new(), Gated::new(memory().0));
    let mut service = layer(store.clone()).layer(probe.clone());
    {
        let mut response = pin!(service.ready().await.unwrap().call(Request::new(())));
        assert!(once(response.as_mut()).await.is_pending());
    }
    drop(service.ready().await.unwrap().call(Request::new(())));
    assert_eq!(probe.calls(), 0);
    store.open();
    assert_eq!(send(&mut service).await.status(), StatusCode::OK);
    assert_eq!(probe.calls(), 1);
}

#[tokio::test]
async fn a_denial_that_is_polled_again_after_its_end_does_not_panic() {
    let probe = Probe::new();
    let limit = Limit::new("none", Quota::per_minute(1)).cost_by(|_| 2);
    let layer = RateLimitLayer::with_policy(policy("none", [limit]), &Limiter::new(memory().0));
    let mut service = layer.layer(probe.clone());
    let mut response = pin!(service.ready().await.unwrap().call(Request::new(())));
    assert_eq!(response.as_mut().await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(once(response.as_mut()).await.is_pending());
    assert_eq!(probe.calls(), 0);
}

/// Polls once.
async fn once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}
