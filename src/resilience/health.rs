use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use crate::{
    store::{StoreError, StoreErrorKind},
    telemetry,
    time::{Clock, MICROS_PER_SEC},
};

/// A store counts as failing until no request has failed for so long: one flaky key would else log
/// two lines for each request.
const QUIET: u64 = MICROS_PER_SEC;

/// Whether the store answers, so that each change of that is logged once, and not each request.
#[derive(Debug)]
pub(crate) struct Health {
    clock: Arc<dyn Clock>,
    /// A bit for each kind of failure that was logged since the store last answered.
    failing: AtomicU32,
    last_failure: AtomicU64,
}

impl Health {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, failing: AtomicU32::new(0), last_failure: AtomicU64::new(0) }
    }

    /// Takes note of an answer, or of the lack of one.
    pub(crate) fn note<T>(&self, answer: &Result<T, StoreError>) {
        match answer {
            Ok(_) => self.answered(),
            Err(error) => self.failed(error),
        }
    }

    fn answered(&self) {
        if self.failing.load(Ordering::Relaxed) == 0 {
            return;
        }
        let last = self.last_failure.load(Ordering::Relaxed);
        let quiet = self.clock.now().as_micros().saturating_sub(last);
        if quiet >= QUIET && self.failing.swap(0, Ordering::Relaxed) != 0 {
            telemetry::store_recovered();
        }
    }

    fn failed(&self, error: &StoreError) {
        telemetry::store_failed(error.kind().as_str());
        self.last_failure.store(self.clock.now().as_micros(), Ordering::Relaxed);
        let bit = bit(error.kind());
        if self.failing.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            let misconfigured = error.kind() == StoreErrorKind::Misconfigured;
            telemetry::store_failing(error, misconfigured);
        }
    }
}

fn bit(kind: StoreErrorKind) -> u32 {
    let at = StoreErrorKind::ALL.iter().position(|other| *other == kind);
    1 << at.unwrap_or_default()
}
