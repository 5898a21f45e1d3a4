use crate::{
    accel::{DenyCache, Leases},
    resilience::Monitor,
    store::{Hit, Store},
};

/// Whom to ask: the store, after what spares a trip to it.
#[derive(Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) leases: Option<&'a Leases>,
    pub(super) cache: Option<&'a DenyCache>,
    /// Knows whether calls go to the store; none, if they all do.
    pub(super) monitor: Option<&'a Monitor>,
}

impl Desk<'_> {
    /// Whether a call about these goes to the store: no breaker before it is open.
    pub(super) fn asks(&self, hits: &[Hit<'_>]) -> bool {
        self.monitor.is_none_or(|monitor| monitor.is_closed(hits.iter().map(|hit| hit.key)))
    }

    /// A key was reset or given something back.
    pub(super) fn forget(&self, key: &[u8]) {
        if let Some(leases) = self.leases {
            leases.forget(key);
        }
        if let Some(cache) = self.cache {
            cache.forget(key);
        }
    }
}
