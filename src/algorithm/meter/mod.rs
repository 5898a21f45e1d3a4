mod alone;
mod later;
mod lease;
mod refund;
mod state;

pub use self::state::{Reading, State};
use super::{
    Counts, Denials, FixedWindow, FullAt, Lock, SlidingCounter, SlidingLog, TokenBucket,
    WindowCount,
};
use crate::{
    decision::{Stamp, Standing},
    time::Timestamp,
};

/// How a limit counts, with its numbers.
///
/// A decision takes three steps, so that several limits can be charged together or not at all: each
/// limit's state is [settled](Meter::settle) and [read](Meter::read); if all readings
/// [fit](Meter::fits), all are [charged](Meter::charge); and the [standing](Meter::standing) follows
/// from the reading alone, which may have come from a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meter {
    /// A token bucket.
    TokenBucket(TokenBucket),
    /// A sliding window that keeps every unit.
    SlidingLog(SlidingLog),
    /// A sliding window of two counts.
    SlidingCounter(SlidingCounter),
    /// A window by the clock or the calendar.
    FixedWindow(FixedWindow),
    /// A lock, which guards the hit before it.
    Lock(Lock),
}

impl Meter {
    /// Brings a state that lies further ahead than it can, because the clock stepped back, to its
    /// bound, so that no key is locked for longer than a full refill. That is done for denied requests
    /// too. Whether the state changed.
    pub fn settle(&self, state: &mut State, now: Timestamp) -> bool {
        match (self, state) {
            (Self::TokenBucket(bucket), State::TokenBucket(full_at)) => {
                let (backlog, ahead) = bucket.backlog(Some(*full_at), now);
                if ahead {
                    *full_at = bucket.state(backlog, 0, now);
                }
                ahead
            }
            (Self::SlidingLog(log), State::SlidingLog(moments)) => log.settle(moments, now),
            (Self::SlidingCounter(counter), State::SlidingCounter(counts)) => {
                let (settled, ahead) = counter.counts(Some(*counts), now);
                if ahead {
                    *counts = settled;
                }
                ahead
            }
            (Self::FixedWindow(window), State::FixedWindow(count)) => {
                let (settled, ahead) = window.count(Some(*count), now);
                if ahead {
                    *count = settled;
                }
                ahead
            }
            (Self::Lock(lock), State::Lock(denials)) => {
                let (settled, ahead) = lock.denials(Some(*denials), now);
                if ahead {
                    *denials = settled;
                }
                ahead
            }
            // The name of a state holds its algorithm, so a state of another is no state of this one.
            _ => false,
        }
    }

    /// What a request finds at `now` in a settled state.
    #[must_use]
    pub fn read(&self, state: Option<&State>, now: Timestamp) -> Reading {
        match self {
            Self::TokenBucket(bucket) => {
                let state = state.and_then(State::full_at);
                Reading::TokenBucket(bucket.backlog(state, now).0)
            }
            Self::SlidingLog(log) => {
                Reading::SlidingLog(log.reading(state.and_then(State::moments), 0, false, now))
            }
            Self::SlidingCounter(counter) => {
                let state = state.and_then(State::counts);
                Reading::SlidingCounter(counter.counts(state, now).0)
            }
            Self::FixedWindow(window) => {
                let state = state.and_then(State::window);
                Reading::FixedWindow(window.count(state, now).0)
            }
            Self::Lock(lock) => {
                let state = state.and_then(State::denials);
                Reading::Lock(lock.denials(state, now).0)
            }
        }
    }

    /// Counts, at a lock, that the hit before it does not fit. Whether the state changed, and with it
    /// the reading.
    pub fn deny(&self, state: &mut State, reading: &mut Reading, now: Timestamp) -> bool {
        let (Self::Lock(lock), Reading::Lock(found)) = (self, &mut *reading) else { return false };
        let Some(denials) = lock.denied(*found, now) else { return false };
        *found = denials;
        *state = State::Lock(denials);
        true
    }

    /// Whether it guards the hit before it, and is never charged.
    #[must_use]
    pub const fn guards(&self) -> bool {
        matches!(self, Self::Lock(_))
    }

    /// Whether `cost` units are left. A cost of 0 always fits.
    #[must_use]
    pub fn fits(&self, reading: Reading, cost: u64, now: Timestamp) -> bool {
        match (self, reading) {
            (Self::TokenBucket(bucket), Reading::TokenBucket(backlog)) => {
                bucket.fits(backlog, cost)
            }
            (Self::SlidingLog(log), Reading::SlidingLog(reading)) => log.fits(reading.count, cost),
            (Self::SlidingCounter(counter), Reading::SlidingCounter(counts)) => {
                counter.fits(counts, cost, now)
            }
            (Self::FixedWindow(window), Reading::FixedWindow(count)) => window.fits(count, cost),
            (Self::Lock(lock), Reading::Lock(denials)) => lock.fits(denials, cost),
            _ => false,
        }
    }

    /// Whether a state is one of this algorithm. A store that is asked about one name by several finds
    /// none of its own.
    const fn owns(&self, state: &State) -> bool {
        matches!(
            (self, state),
            (Self::TokenBucket(_), State::TokenBucket(_))
                | (Self::SlidingLog(_), State::SlidingLog(_))
                | (Self::SlidingCounter(_), State::SlidingCounter(_))
                | (Self::FixedWindow(_), State::FixedWindow(_))
                | (Self::Lock(_), State::Lock(_))
        )
    }

    /// The state of a key from which nothing was taken.
    #[must_use]
    pub fn empty(&self) -> State {
        match self {
            Self::TokenBucket(_) => State::TokenBucket(FullAt::default()),
            Self::SlidingLog(_) => State::SlidingLog(Box::default()),
            Self::SlidingCounter(_) => State::SlidingCounter(Counts::default()),
            Self::FixedWindow(_) => State::FixedWindow(WindowCount::default()),
            Self::Lock(_) => State::Lock(Denials::default()),
        }
    }

    /// Takes `cost` units, which fit, on top of what was read in a settled state.
    pub fn charge(&self, state: &mut State, reading: Reading, cost: u64, now: Timestamp) {
        if !self.owns(state) {
            *state = self.empty();
        }
        match (self, state, reading) {
            (
                Self::TokenBucket(bucket),
                State::TokenBucket(full_at),
                Reading::TokenBucket(found),
            ) => {
                *full_at = bucket.state(found, cost, now);
            }
            (Self::SlidingLog(log), State::SlidingLog(moments), _) => {
                log.charge(moments, cost, now)
            }
            (
                Self::SlidingCounter(counter),
                State::SlidingCounter(counts),
                Reading::SlidingCounter(found),
            ) => *counts = counter.charged(found, cost),
            (Self::FixedWindow(window), State::FixedWindow(count), Reading::FixedWindow(found)) => {
                *count = window.charged(found, cost);
            }
            _ => {}
        }
    }

    /// Adds to a reading what only the state before the charge tells: when a log frees units.
    #[must_use]
    pub fn foresee(
        &self,
        reading: Reading,
        state: Option<&State>,
        cost: u64,
        admitted: bool,
        now: Timestamp,
    ) -> Reading {
        match self {
            Self::SlidingLog(log) => Reading::SlidingLog(log.reading(
                state.and_then(State::moments),
                cost,
                admitted,
                now,
            )),
            _ => reading,
        }
    }

    /// Where a key stands after a request of `cost`, decided at `now`: charged if the whole request
    /// was `admitted`, untouched otherwise.
    #[must_use]
    pub fn standing(
        &self,
        reading: Reading,
        cost: u64,
        admitted: bool,
        now: Timestamp,
    ) -> Standing {
        match (self, reading) {
            (Self::TokenBucket(bucket), Reading::TokenBucket(backlog)) => {
                bucket.standing(backlog, cost, admitted, now)
            }
            (Self::SlidingLog(log), Reading::SlidingLog(reading)) => {
                log.standing(reading, cost, admitted, now)
            }
            (Self::SlidingCounter(counter), Reading::SlidingCounter(counts)) => {
                counter.standing(counts, cost, admitted, now)
            }
            (Self::FixedWindow(window), Reading::FixedWindow(count)) => {
                window.standing(count.used, cost, admitted, now)
            }
            (Self::Lock(lock), Reading::Lock(denials)) => lock.standing(denials, cost, now),
            // A reading of another algorithm tells nothing; a store that mixes them up admits nothing.
            _ => {
                let stamp = Stamp::default();
                Standing { fits: false, remaining: 0, wait: None, reset: 0, stamp }
            }
        }
    }

    /// The moment from which a state says no more than none, in microseconds since the Unix epoch.
    #[must_use]
    pub fn fresh_at(&self, state: &State) -> u64 {
        match (self, state) {
            (Self::TokenBucket(_), State::TokenBucket(full_at)) => full_at.micros_ceil(),
            (Self::SlidingLog(log), State::SlidingLog(moments)) => log.fresh_at(moments),
            (Self::SlidingCounter(counter), State::SlidingCounter(counts)) => {
                counter.fresh_at(*counts)
            }
            (Self::FixedWindow(window), State::FixedWindow(count)) => window.fresh_at(*count),
            (Self::Lock(_), State::Lock(denials)) => denials.until.as_micros(),
            _ => 0,
        }
    }
}
