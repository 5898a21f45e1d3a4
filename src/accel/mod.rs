//! What spares a trip to the store.

mod deny_cache;

pub(crate) use self::deny_cache::DenyCache;
