//! Without TLS.

use deadpool_redis::redis::{ConnectionInfo, RedisError};

use crate::store::StoreError;

pub(super) const AVAILABLE: bool = false;

#[derive(Clone, Default)]
pub(super) struct Tls;

impl Tls {
    pub(super) const fn is_set(&self) -> bool {
        false
    }

    pub(super) fn apply(&self, info: ConnectionInfo) -> Result<ConnectionInfo, StoreError> {
        Ok(info)
    }
}

pub(super) const fn fault(_error: &RedisError) -> Option<String> {
    None
}
