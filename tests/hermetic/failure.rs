//! A store that fails, and what each policy does then.

mod by_kind;
mod flips;
mod local;
mod outcome;
mod wrong_answer;

use tollgate::{Global, Limit, Limiter, ManualClock, OnFailure, Policy, Quota, StoreErrorKind};

use crate::support::{Flaky, memory};

const KINDS: [StoreErrorKind; 8] = [
    StoreErrorKind::Overloaded,
    StoreErrorKind::Timeout,
    StoreErrorKind::Unreachable,
    StoreErrorKind::Busy,
    StoreErrorKind::ReadOnly,
    StoreErrorKind::OutOfMemory,
    StoreErrorKind::Misconfigured,
    StoreErrorKind::Unexpected,
];

const ALL: [OnFailure; 3] = [OnFailure::Allow, OnFailure::Deny, OnFailure::Local { share: 0.5 }];

fn api(quota: Quota, on_failure: OnFailure) -> Policy {
    let policy = Policy::new("api").limit(Global, Limit::new("tries", quota));
    policy.on_failure(on_failure).build().unwrap()
}

/// A limiter whose store can be broken, and is asked all the same; one clock tells the store, the fallback
/// and the log the time.
fn breakable() -> (Limiter, Flaky, ManualClock) {
    let (store, clock) = memory();
    let fallback = tollgate::MemoryStore::builder().clock(clock.clone()).build();
    let flaky = Flaky::new(store);
    (Limiter::builder(flaky.clone()).fallback(fallback).breaker(None).build(), flaky, clock)
}
