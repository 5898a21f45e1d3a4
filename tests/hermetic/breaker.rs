//! The breaker: when it opens, what happens then, and how it closes again.

mod closes;
mod held;
mod late;
mod opens;
mod queue;
mod seen;
mod settings;
mod shards;
mod spared;

use std::time::Duration;

use tollgate::{
    Breaker, BreakerState, Limit, Limiter, LimiterBuilder, ManualClock, MemoryStore, Quota, Store,
    StoreErrorKind,
};

use self::held::Held;
use crate::support::{Broken, Flaky, memory};

const MILLI: Duration = Duration::from_millis(1);

/// A limiter whose store can be broken; one clock tells all of them the time.
struct Rig {
    limiter: Limiter,
    store: Flaky,
    held: Held,
    clock: ManualClock,
}

/// A call that may be waiting.
type Call = tokio::task::JoinHandle<Result<(), StoreErrorKind>>;

impl Rig {
    fn new() -> Self {
        Self::with(Breaker::default())
    }

    fn with(breaker: Breaker) -> Self {
        let (store, clock) = memory();
        let store = Flaky::new(store);
        let held = Held::new(store.clone());
        Self { limiter: over(held.clone(), &clock).breaker(breaker).build(), store, held, clock }
    }

    /// Asks for one decision: the error's kind, if there is none.
    async fn ask(&self) -> Result<(), StoreErrorKind> {
        ask(&self.limiter).await
    }

    /// Begins to ask, so many times at once, and keeps those waiting who reach the store.
    async fn begin(&self, calls: usize) -> Vec<Call> {
        self.held.hold(true);
        let calls = (0..calls)
            .map(|_| {
                let limiter = self.limiter.clone();
                tokio::spawn(async move { ask(&limiter).await })
            })
            .collect();
        settle().await;
        self.held.hold(false);
        calls
    }

    fn state(&self) -> BreakerState {
        self.limiter.health().breaker()
    }

    fn is_open(&self) -> bool {
        self.state() != BreakerState::Closed
    }

    async fn fail(&self, kind: StoreErrorKind, times: usize) {
        self.store.break_(Broken::Now(kind));
        for _ in 0..times {
            assert_eq!(self.ask().await, Err(kind));
        }
        self.store.mend();
    }

    /// Five failures, over 10 ms.
    async fn open(&self) {
        self.fail(StoreErrorKind::Unreachable, 4).await;
        self.clock.advance(10 * MILLI);
        assert_eq!(self.state(), BreakerState::Closed);
        self.fail(StoreErrorKind::Unreachable, 1).await;
        assert_eq!(self.state(), BreakerState::Open);
    }

    /// How long it is until somebody asks the store, while requests come all the time.
    async fn pause(&self) -> Duration {
        let asked = self.store.asked();
        for millis in 0..10_000 {
            let _ = self.ask().await;
            if self.store.asked() > asked {
                return millis * MILLI;
            }
            self.clock.advance(MILLI);
        }
        panic!("nobody ever asks the store again");
    }
}

/// Lets all tasks go as far as they can.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

fn over(store: impl Store, clock: &ManualClock) -> LimiterBuilder {
    let fallback = MemoryStore::builder().clock(clock.clone()).build();
    Limiter::builder(store).fallback(fallback)
}

fn limit() -> Limit {
    Limit::new("all", Quota::per_second(1_000_000))
}

async fn ask(limiter: &Limiter) -> Result<(), StoreErrorKind> {
    limiter.check(&limit(), "somebody").await.map(drop).map_err(|error| error.kind())
}
