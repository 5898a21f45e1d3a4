//! What this process gives back or resets is seen at once.

use std::time::Duration;

use http::Request;
use tollgate::{
    Deciding, Decision, Global, Limit, Limiter, ManualClock, MemoryStore, Policy, Quota, Rejection,
    RequestHead, Ruling, Source,
};

use super::{MICRO, World, limits};
use crate::support::{Gated, Remote, secs};

#[tokio::test]
async fn what_is_given_back_is_there_at_once() {
    for limit in limits() {
        let world = World::new();
        let (taken, _) = world.check(&limit).await;
        world.exhaust(&limit).await;
        assert!(!world.check(&limit).await.1);
        taken.refund().await.unwrap();
        let (decision, asked) = world.check(&limit).await;
        assert_eq!((decision.is_allowed(), asked), (true, true), "{:?}", limit.counts_by());
    }
}

#[tokio::test]
async fn a_part_that_is_given_back_is_there_at_once() {
    for limit in limits() {
        let world = World::new();
        let (taken, _) = world.check(&limit.clone().cost(4)).await;
        world.exhaust(&limit).await;
        assert!(!world.check(&limit).await.1);
        taken.refund_units("l", 2).await.unwrap();
        for _ in 0..2 {
            let (decision, asked) = world.check(&limit).await;
            assert_eq!((decision.is_allowed(), asked), (true, true), "{:?}", limit.counts_by());
        }
        assert!(!world.check(&limit).await.0.is_allowed());
    }
}

#[tokio::test]
async fn a_key_that_is_reset_begins_anew_at_once() {
    for limit in limits() {
        let world = World::new();
        world.exhaust(&limit).await;
        assert!(!world.check(&limit).await.1);
        world.limiter.reset(&limit, "another").await.unwrap();
        assert!(!world.check(&limit).await.1, "another key was");
        world.limiter.reset(&limit, "user").await.unwrap();
        let (decision, asked) = world.check(&limit.clone().cost(5)).await;
        assert_eq!((decision.is_allowed(), asked), (true, true), "{:?}", limit.counts_by());
    }
}

#[tokio::test]
async fn it_is_seen_also_where_the_store_says_that_it_failed() {
    let world = World::new();
    let limit = Limit::new("l", Quota::per_minute(1));
    let (taken, _) = world.check(&limit).await;
    for reset in [false, true] {
        world.exhaust(&limit).await;
        world.clock.advance(MICRO);
        world.store.down(true);
        if reset {
            world.limiter.reset(&limit, "user").await.unwrap_err();
        } else {
            taken.refund().await.unwrap_err();
        }
        world.store.down(false);
        // It may have been done all the same.
        assert!(world.check(&limit).await.1, "{reset}");
        world.clock.advance(MICRO);
    }
}

#[tokio::test]
async fn what_others_give_back_is_seen_after_a_second() {
    let world = World::new();
    let limit = Limit::new("l", Quota::per_day(1));
    world.exhaust(&limit).await;
    world.asking.reset(&limit, "user").await.unwrap();
    let (decision, asked) = world.check(&limit).await;
    assert_eq!((decision.is_allowed(), asked), (false, false));
    world.clock.advance(secs(1));
    assert!(world.check(&limit).await.0.is_allowed());
}

fn gated() -> (Limiter, Gated<Remote>, ManualClock) {
    let clock = ManualClock::new();
    let gated = Gated::new(Remote::new(clock.clone()));
    let fallback = MemoryStore::builder().clock(clock.clone()).build();
    (Limiter::builder(gated.clone()).fallback(fallback).build(), gated, clock)
}

/// An answer from before that comes after it.
#[tokio::test]
async fn an_answer_that_comes_late_is_not_remembered() {
    for reset in [false, true] {
        for pause in [Duration::ZERO, MICRO] {
            let (limiter, gated, clock) = gated();
            let limit = Limit::new("l", Quota::per_day(1));
            gated.open();
            let taken = limiter.check(&limit, "user").await.unwrap();
            let late = tokio::spawn({
                let (limiter, limit) = (limiter.clone(), limit.clone());
                async move { limiter.check(&limit, "user").await.unwrap() }
            });
            tokio::task::yield_now().await;
            clock.advance(pause);
            if reset {
                limiter.reset(&limit, "user").await.unwrap();
            } else {
                taken.refund().await.unwrap();
            }
            clock.advance(pause);
            gated.open();
            assert!(!late.await.unwrap().is_allowed(), "it was decided before");
            gated.open();
            assert!(limiter.check(&limit, "user").await.unwrap().is_allowed());
        }
    }
}

#[tokio::test]
async fn an_answer_that_another_has_overtaken_is_not_remembered() {
    let (limiter, gated, clock) = gated();
    let limit = |cost| Limit::new("l", Quota::per_day(5)).cost(cost);
    let policy = |cost| Policy::new("p").limit(Global, limit(cost)).build().unwrap();
    let (cheap, dear) = (policy(2), policy(4));
    let decide = |policy| {
        clock.advance(MICRO);
        limiter.decide(policy, RequestHead::new(&Request::new(())))
    };
    let told = async |deciding: Deciding| -> Decision {
        gated.open();
        match deciding.await {
            Ruling::Admit(decision) | Ruling::Reject(Rejection::Limited(decision)) => decision,
            Ruling::Reject(other) => panic!("{other:?}"),
        }
    };
    assert!(told(decide(&cheap)).await.is_allowed());
    let [late, early, charged] = [&dear, &dear, &cheap].map(decide);
    assert_eq!(told(early).await.remaining(), Some(3));
    assert_eq!(told(charged).await.remaining(), Some(1));
    assert_eq!(told(late).await.remaining(), Some(3));
    let denied = told(decide(&dear)).await;
    assert_eq!((denied.source(), denied.remaining()), (Source::Other, Some(1)));
    let denied = told(decide(&dear)).await;
    assert_eq!((denied.source(), denied.remaining()), (Source::Cache, Some(1)));
}
