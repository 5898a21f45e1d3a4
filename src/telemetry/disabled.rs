use std::sync::Arc;

pub(super) fn request(_policy: &Arc<str>, _outcome: &'static str) {}

pub(super) fn store_error(_kind: &'static str) {}

pub(super) fn refunds_withheld(_count: usize) {}

pub(super) fn breaker(_state: u8) {}

/// Measures how long a store takes.
#[derive(Debug)]
pub(crate) struct Timer;

impl Timer {
    pub(crate) const fn start() -> Self {
        Self
    }

    pub(crate) fn stop(&self) {}
}
