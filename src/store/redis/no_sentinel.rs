//! Without Sentinel.

use std::sync::Arc;

use super::{builder::RedisStoreBuilder, origin::Opened, url};
use crate::store::StoreError;

#[derive(Clone, Default)]
pub(super) struct Login {}

#[derive(Clone)]
pub(super) struct Seeds;

pub(super) enum Sentinels {}

impl Login {
    pub(super) const fn is_set(&self) -> bool {
        false
    }
}

impl Seeds {
    /// An error, if the URL asks for sentinels.
    pub(super) fn in_url(url: &str) -> Result<Option<Self>, StoreError> {
        match url::of_sentinels(url) {
            None => Ok(None),
            Some((scheme, _)) => Err(lacks(&format!("has the scheme `{scheme}`"))),
        }
    }
}

impl Sentinels {
    pub(super) fn new(_seeds: &Seeds, _of: &RedisStoreBuilder) -> Result<Self, StoreError> {
        Err(lacks("names sentinels"))
    }

    pub(super) async fn connect(&self) -> Result<Opened, StoreError> {
        match *self {}
    }

    pub(super) async fn look(&self) {
        match *self {}
    }

    pub(super) const fn close(&self) {
        match *self {}
    }

    pub(super) const fn is_due(&self) -> bool {
        match *self {}
    }

    pub(super) const fn generation(&self) -> u64 {
        match *self {}
    }

    pub(super) const fn whose(&self) -> &str {
        match *self {}
    }

    pub(super) const fn hint(&self) -> &'static str {
        match *self {}
    }

    pub(super) const fn place(&self) -> Option<Arc<str>> {
        match *self {}
    }
}

fn lacks(what: &str) -> StoreError {
    url::wrong(format!("{what}, for which tollgate needs its cargo feature `redis-sentinel`"))
}
