use std::{fmt, sync::Arc, sync::atomic::AtomicBool, time::Duration};

use super::{Inner, Limiter};
use crate::{
    accel::{DenyCache, Leases},
    resilience::{Breaker, Guard, Monitor},
    store::{MemoryStore, Store},
};

/// How long a denial is remembered, at most.
const DENIALS: Duration = Duration::from_secs(1);

/// Builds a [`Limiter`].
#[must_use]
pub struct LimiterBuilder {
    store: Arc<dyn Store>,
    fallback: Option<MemoryStore>,
    remember_denials: Duration,
    breaker: Option<Breaker>,
}

impl LimiterBuilder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, fallback: None, remember_denials: DENIALS, breaker: Some(Breaker::default()) }
    }

    /// Keeps in `fallback` what policies with [`OnFailure::Local`](crate::OnFailure::Local) count while
    /// the store does not answer. Its clock also tells how long the store takes to answer, when a store that
    /// failed has been well for long enough to say so in the log, and how long denials are remembered.
    /// Default: a store of its own.
    pub fn fallback(mut self, fallback: MemoryStore) -> Self {
        self.fallback = Some(fallback);
        self
    }

    /// For how long, at most, the limiter remembers that a shared store denied a key, and denies it
    /// again without asking: never for longer than the store would, and with the same answer. Zero
    /// asks about every request. Default: one second.
    ///
    /// What other instances give back or reset is seen after this time.
    pub const fn remember_denials(mut self, longest: Duration) -> Self {
        self.remember_denials = longest;
        self
    }

    /// When the limiter stops asking a store that fails or is slow, so that no request waits for it;
    /// `None` has it ask about each request. A store in this process needs none, and has none. Default:
    /// [`Breaker::default`].
    pub fn breaker(mut self, breaker: impl Into<Option<Breaker>>) -> Self {
        self.breaker = breaker.into();
        self
    }

    /// The limiter.
    #[must_use]
    pub fn build(self) -> Limiter {
        let fallback = self.fallback.unwrap_or_default();
        let is_local = self.store.is_local();
        let breaker = self.breaker.filter(|_| !is_local);
        let direct = self.store;
        let monitor = Arc::new(Monitor::new(Arc::clone(&direct), fallback.clock(), breaker));
        let store: Arc<dyn Store> = match breaker {
            Some(_) => Arc::new(Guard::new(Arc::clone(&direct), Arc::clone(&monitor))),
            None => Arc::clone(&direct),
        };
        let remembers = !self.remember_denials.is_zero() && !is_local;
        // In this process, units are as near as leases of them.
        let leases = (!is_local).then(|| Leases::new(Arc::clone(&store), fallback.clock()));
        let cache = remembers.then(|| DenyCache::new(fallback.clock(), self.remember_denials));
        Limiter(Arc::new(Inner {
            store,
            direct,
            monitor,
            cache,
            leases,
            fallback,
            setup_logged: AtomicBool::new(false),
            number: fastrand::u64(..),
        }))
    }
}

impl fmt::Debug for LimiterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimiterBuilder")
            .field("store", &self.store)
            .field("remember_denials", &self.remember_denials)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}
