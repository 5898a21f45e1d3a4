use std::{fmt, sync::Arc, sync::atomic::AtomicBool, time::Duration};

use super::{Inner, Limiter};
use crate::{
    accel::{DenyCache, Leases},
    resilience::Health,
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
}

impl LimiterBuilder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, fallback: None, remember_denials: DENIALS }
    }

    /// Keeps in `fallback` what policies with [`OnFailure::Local`](crate::OnFailure::Local) count while
    /// the store does not answer. Its clock also tells when a store that failed has been well for long
    /// enough to say so in the log, and how long denials are remembered. Default: a store of its own.
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

    /// The limiter.
    #[must_use]
    pub fn build(self) -> Limiter {
        let fallback = self.fallback.unwrap_or_default();
        let remembers = !self.remember_denials.is_zero() && !self.store.is_local();
        // In this process, units are as near as leases of them.
        let leases = (!self.store.is_local())
            .then(|| Leases::new(Arc::clone(&self.store), fallback.clock()));
        let cache = remembers.then(|| DenyCache::new(fallback.clock(), self.remember_denials));
        Limiter(Arc::new(Inner {
            store: self.store,
            health: Health::new(fallback.clock()),
            cache,
            leases,
            fallback,
            setup_logged: AtomicBool::new(false),
        }))
    }
}

impl fmt::Debug for LimiterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimiterBuilder")
            .field("store", &self.store)
            .field("remember_denials", &self.remember_denials)
            .finish_non_exhaustive()
    }
}
