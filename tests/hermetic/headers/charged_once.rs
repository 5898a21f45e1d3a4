//! A limit around the router and around a route is charged once.

use http::{Request, StatusCode};
use tollgate::{
    Global, Limit, Limiter, MemoryStore, Policy, Quota, RateLimitLayer, Store,
    store::{Hit, Refund, Reply},
};
use tower::{Layer, Service, ServiceExt};

use crate::support::{Later, Probe, limiter, memory, policy, send};

fn of(name: &'static str) -> Policy {
    policy(name, [Limit::new("tries", Quota::per_minute(4))])
}

/// How many of 9 requests pass both layers, outermost first.
async fn admitted(outer: RateLimitLayer, inner: RateLimitLayer) -> usize {
    let probe = Probe::new();
    let mut service = outer.layer(inner.layer(probe.clone()));
    for _ in 0..9 {
        send(&mut service).await;
    }
    probe.calls()
}

#[tokio::test]
async fn by_one_policy_and_one_limiter() {
    let (limiter, _) = limiter();
    let layer = RateLimitLayer::with_policy(of("api"), &limiter);
    assert_eq!(admitted(layer.clone(), layer).await, 4);
}

#[tokio::test]
async fn by_one_policy_written_twice() {
    let (limiter, _) = limiter();
    let layer = || RateLimitLayer::with_policy(of("api"), &limiter);
    assert_eq!(admitted(layer(), layer()).await, 4);
}

#[tokio::test]
async fn by_two_unnamed_layers_with_clones_of_one_store() {
    let (store, _) = memory();
    let layer = || RateLimitLayer::new(Global, Quota::per_minute(4), store.clone());
    assert_eq!(admitted(layer(), layer()).await, 4);
}

#[tokio::test]
async fn by_two_limiters_of_one_store() {
    let (store, _) = memory();
    let layer = || RateLimitLayer::with_policy(of("api"), &Limiter::new(store.clone()));
    assert_eq!(admitted(layer(), layer()).await, 4);
}

#[tokio::test]
async fn by_two_policies_with_one_scope() {
    let (limiter, _) = limiter();
    let layer = |name| {
        let limit = Limit::new("tries", Quota::per_minute(4)).scope("shared");
        RateLimitLayer::with_policy(policy(name, [limit]), &limiter)
    };
    assert_eq!(admitted(layer("a"), layer("b")).await, 4);
}

#[tokio::test]
async fn by_a_limiter_whose_store_has_no_identity_and_answers_later() {
    let limiter = Limiter::new(Later(memory().0));
    let layer = || RateLimitLayer::with_policy(of("api"), &limiter);
    assert_eq!(admitted(layer(), layer()).await, 4);
}

#[tokio::test]
async fn with_another_layer_between() {
    let (limiter, _) = limiter();
    let layer = |name| RateLimitLayer::with_policy(of(name), &limiter);
    let probe = Probe::new();
    let mut service = layer("a").layer(layer("b").layer(layer("a").layer(probe.clone())));
    for _ in 0..9 {
        send(&mut service).await;
    }
    assert_eq!(probe.calls(), 4);
}

#[tokio::test]
async fn but_two_policies_without_a_scope_are_both_charged() {
    let (limiter, clock) = limiter();
    let layer = |name| RateLimitLayer::with_policy(of(name), &limiter);
    let mut outer = layer("a").layer(Probe::new());
    assert_eq!(admitted(layer("a"), layer("b")).await, 4);
    assert_eq!(send(&mut outer).await.status(), StatusCode::TOO_MANY_REQUESTS);
    clock.advance(crate::support::secs(60));
    let mut inner = layer("b").layer(Probe::new());
    assert_eq!(send(&mut inner).await.status(), StatusCode::OK);
}

/// A store that says nothing about which it is.
#[derive(Debug)]
struct Nameless(MemoryStore);

impl Store for Nameless {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        self.0.acquire(hits)
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        self.0.refund(refunds)
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        self.0.reset(keys)
    }
}

#[tokio::test]
async fn but_two_stores_that_do_not_say_who_they_are_are_both_charged() {
    let stores = [memory().0, memory().0];
    let [outer, inner] = stores.each_ref().map(|store| {
        RateLimitLayer::with_policy(of("api"), &Limiter::new(Nameless(store.clone())))
    });
    assert_eq!(admitted(outer, inner.clone()).await, 4);
    // The inner one has nothing left either.
    assert_eq!(send(&mut inner.layer(Probe::new())).await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn and_a_request_that_is_sent_again_is_charged_again() {
    let (limiter, _) = limiter();
    let mut service = RateLimitLayer::with_policy(of("api"), &limiter).layer(Probe::new());
    let mut passed = 0;
    for _ in 0..9 {
        // The extensions of a response are not those of the next request.
        let response = service.ready().await.unwrap().call(Request::new(())).await.unwrap();
        passed += usize::from(response.status() == StatusCode::OK);
    }
    assert_eq!(passed, 4);
}
