use super::{Meter, Reading, State};
use crate::{decision::Stamp, time::Timestamp};

impl Meter {
    /// The stamp of what is left of a charge after `units` of it were given back.
    #[must_use]
    pub fn rest(&self, stamp: Stamp, units: u64) -> Stamp {
        match self {
            Self::TokenBucket(bucket) => bucket.rest(stamp, units),
            _ => stamp,
        }
    }

    /// Gives back `units` of a charge with this stamp, to a settled state: what has not come back by
    /// itself, of the window or the moment that was charged, and never more than was taken. Whether the
    /// state changed.
    pub fn refund(&self, state: &mut State, units: u64, stamp: Stamp, now: Timestamp) -> bool {
        let found = self.read(Some(state), now);
        match (self, &mut *state, found) {
            (
                Self::TokenBucket(bucket),
                State::TokenBucket(full_at),
                Reading::TokenBucket(backlog),
            ) => {
                let before = bucket.state(backlog, 0, now);
                let after = bucket.refunded(backlog, units, stamp, now);
                let changed = after != before;
                if changed {
                    *full_at = after;
                }
                changed
            }
            (Self::SlidingLog(log), State::SlidingLog(moments), _) => {
                log.refund(moments, units, stamp, now)
            }
            (
                Self::SlidingCounter(counter),
                State::SlidingCounter(counts),
                Reading::SlidingCounter(found),
            ) => {
                let after = counter.refunded(found, units, stamp);
                let changed = after != found;
                if changed {
                    *counts = after;
                }
                changed
            }
            (Self::FixedWindow(window), State::FixedWindow(count), Reading::FixedWindow(found)) => {
                let after = window.refunded(found, units, stamp, now);
                let changed = after != found;
                if changed {
                    *count = after;
                }
                changed
            }
            _ => false,
        }
    }
}
