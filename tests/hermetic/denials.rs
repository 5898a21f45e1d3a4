//! What a shared store denied is denied again without asking it, until it may have changed.

#![cfg(test)]

mod flood;
mod forgotten;
mod lockout;
mod random;
mod same;
mod seen;
mod several;
mod time;

use std::time::Duration;

use tollgate::{
    Calendar, Decision, Limit, Limiter, LimiterBuilder, ManualClock, MemoryStore, Quota, Source,
};

use crate::support::{ALGORITHMS, Remote};

const MICRO: Duration = Duration::from_micros(1);

/// A store elsewhere, one limiter that remembers what it denied, and one that asks about everything.
struct World {
    store: Remote,
    clock: ManualClock,
    limiter: Limiter,
    asking: Limiter,
}

impl World {
    fn new() -> Self {
        Self::with(|limiter| limiter)
    }

    fn with(change: impl FnOnce(LimiterBuilder) -> LimiterBuilder) -> Self {
        let clock = ManualClock::new();
        let store = Remote::new(clock.clone());
        let builder = || {
            let fallback = MemoryStore::builder().clock(clock.clone()).build();
            Limiter::builder(store.clone()).fallback(fallback)
        };
        let limiter = change(builder()).build();
        let asking = builder().remember_denials(Duration::ZERO).build();
        Self { store, clock, limiter, asking }
    }

    /// How a user is decided about, and whether the store was asked.
    async fn check(&self, limit: &Limit) -> (Decision, bool) {
        self.store.asked();
        let decision = self.limiter.check(limit, "user").await.unwrap();
        let asked = self.store.asked();
        assert!(asked <= 1);
        let source = if asked == 1 { Source::Other } else { Source::Cache };
        assert_eq!(decision.source(), source);
        (decision, asked == 1)
    }

    /// Takes all that the user has left, and is denied once by the store.
    async fn exhaust(&self, limit: &Limit) -> Decision {
        loop {
            let (decision, asked) = self.check(limit).await;
            assert!(asked);
            if !decision.is_allowed() {
                return decision;
            }
        }
    }

    /// What a limiter that remembers nothing says.
    async fn truth(&self, limit: &Limit) -> Decision {
        self.asking.check(limit, "user").await.unwrap()
    }
}

/// Five units of each algorithm.
fn limits() -> impl Iterator<Item = Limit> {
    let limit = |algorithm| Limit::new("l", Quota::per_minute(5)).algorithm(algorithm);
    ALGORITHMS.into_iter().map(limit).chain([Limit::calendar("l", 5, Calendar::Day)])
}
