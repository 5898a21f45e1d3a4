use std::sync::Arc;

use crate::time::MonotonicClock;

pub(super) fn request(policy: &Arc<str>, outcome: &'static str) {
    let policy = Arc::clone(policy);
    metrics::counter!("tollgate_requests_total", "policy" => policy, "outcome" => outcome)
        .increment(1);
}

pub(super) fn store_error(kind: &'static str) {
    metrics::counter!("tollgate_store_errors_total", "kind" => kind).increment(1);
}

/// Measures how long a store takes.
#[derive(Debug)]
pub(crate) struct Timer(MonotonicClock);

impl Timer {
    pub(crate) fn start() -> Self {
        Self(MonotonicClock::new())
    }

    pub(crate) fn stop(&self) {
        let taken = self.0.elapsed();
        metrics::histogram!("tollgate_store_duration_seconds").record(taken.as_secs_f64());
    }
}
