use super::BreakerState;
use crate::{failure::StoreErrorKind, time::Timestamp};

/// How a limiter's store does, at the moment that it was asked for: see
/// [`Limiter::health`](crate::Limiter::health).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Health {
    pub(super) breaker: BreakerState,
    pub(super) last_failure: Option<Failure>,
    pub(super) failures: [u64; StoreErrorKind::COUNT],
}

/// The last time that the store did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// How it failed: never [`BreakerOpen`](StoreErrorKind::BreakerOpen), but what came before that.
    pub kind: StoreErrorKind,
    /// When, by the clock of the limiter's [fallback](crate::LimiterBuilder::fallback).
    pub at: Timestamp,
}

impl Health {
    /// The breaker before the store; always closed where there is none.
    #[must_use]
    pub const fn breaker(&self) -> BreakerState {
        self.breaker
    }

    /// The last failure since the limiter was made, also if the store has answered since.
    #[must_use]
    pub const fn last_failure(&self) -> Option<Failure> {
        self.last_failure
    }

    /// How many calls have failed in this way since the limiter was made, those included that an open
    /// breaker turned back.
    #[must_use]
    pub const fn failures(&self, kind: StoreErrorKind) -> u64 {
        self.failures[kind.place()]
    }
}
