use crate::{
    accel::{DenyCache, Leases},
    store::Store,
};

/// Whom to ask: the store, after what spares a trip to it.
#[derive(Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) leases: Option<&'a Leases>,
    pub(super) cache: Option<&'a DenyCache>,
    /// Whether calls go to the store: it has no breaker that is open.
    pub(super) closed: bool,
}

impl Desk<'_> {
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
