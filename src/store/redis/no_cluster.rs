//! Without clusters.

use std::{fmt, sync::Arc, time::Duration};

use deadpool_redis::redis::ConnectionInfo;

use super::{RedisStoreBuilder, error::misconfigured, worker::Worker};
use crate::store::{Hit, Refund, Reply, StoreError};

/// There is none.
pub(super) enum Cluster {}

/// An error, if the URL is that of a cluster.
pub(super) fn seeds(url: &str) -> Result<Option<Vec<Box<str>>>, StoreError> {
    match super::url::cluster_scheme(url) {
        Some((scheme, _)) => Err(misconfigured(format!(
            "the URL of the Redis server has the scheme `{scheme}`, for which tollgate needs its cargo \
             feature `redis-cluster`"
        ))),
        None => Ok(None),
    }
}

impl Cluster {
    pub(super) fn new(
        _: RedisStoreBuilder,
        _: Vec<ConnectionInfo>,
        _: Worker,
    ) -> Result<Self, StoreError> {
        Err(misconfigured("clusters need the cargo feature `redis-cluster`".to_owned()))
    }

    pub(super) async fn connect(&self) -> Result<(), StoreError> {
        match *self {}
    }

    pub(super) fn acquire(self: &Arc<Self>, _: &[Hit<'_>]) -> Reply {
        match **self {}
    }

    pub(super) fn refund(self: &Arc<Self>, _: &[Refund<'_>]) -> Reply<()> {
        match **self {}
    }

    pub(super) fn reset(self: &Arc<Self>, _: &[&[u8]]) -> Reply<()> {
        match **self {}
    }

    pub(super) fn lateness(&self) -> Duration {
        match *self {}
    }

    pub(super) fn shard(&self, _: &[u8]) -> u32 {
        match *self {}
    }

    pub(super) fn place(&self, _: u32) -> Option<Arc<str>> {
        match *self {}
    }

    pub(super) fn close(&self) {
        match *self {}
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
