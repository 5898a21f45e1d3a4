use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use crate::time::MonotonicClock;

pub(super) fn request(policy: &Arc<str>, outcome: &'static str) {
    let policy = Arc::clone(policy);
    metrics::counter!("tollgate_requests_total", "policy" => policy, "outcome" => outcome)
        .increment(1);
}

pub(super) fn store_error(kind: &'static str) {
    metrics::counter!("tollgate_store_errors_total", "kind" => kind).increment(1);
}

pub(super) fn refunds_withheld(count: usize) {
    metrics::counter!("tollgate_refunds_withheld_total").increment(count as u64);
}

/// 0 is closed, 1 half open, 2 open.
pub(super) fn breaker(state: u8) {
    metrics::gauge!("tollgate_breaker_state").set(state);
}

/// Read once at each end, and never set: only what lies between counts.
static CLOCK: LazyLock<MonotonicClock> = LazyLock::new(MonotonicClock::new);

/// Measures how long a store takes.
#[derive(Debug)]
pub(crate) struct Timer(Duration);

impl Timer {
    pub(crate) fn start() -> Self {
        Self(CLOCK.elapsed())
    }

    pub(crate) fn stop(&self) {
        let taken = CLOCK.elapsed().saturating_sub(self.0);
        metrics::histogram!("tollgate_store_duration_seconds").record(taken.as_secs_f64());
    }
}
