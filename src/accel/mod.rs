//! What spares a trip to the store.

mod deny_cache;
mod lease;

pub(crate) use self::{deny_cache::DenyCache, lease::Leases};
