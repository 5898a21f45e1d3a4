use super::{Meter, Reading};
use crate::{
    algorithm::{Backlog, LogReading},
    time::Timestamp,
};

impl Meter {
    /// What was read at `then` comes to this at `now`, if nothing is charged or given back in between.
    /// None, if that is not known: of a log, only the wait for the same cost is, until it is over. What
    /// fits goes on to fit.
    #[must_use]
    pub fn later(&self, found: Reading, then: Timestamp, now: Timestamp) -> Option<Reading> {
        let passed = now.as_micros().saturating_sub(then.as_micros());
        Some(match (self, found) {
            (Self::TokenBucket(_), Reading::TokenBucket(backlog)) => {
                Reading::TokenBucket(backlog.saturating_sub(Backlog::new(passed, 0)))
            }
            (Self::SlidingLog(_), Reading::SlidingLog(LogReading { count, wait, reset })) => {
                let wait =
                    if wait > 0 { wait.checked_sub(passed).filter(|it| *it > 0)? } else { 0 };
                Reading::SlidingLog(LogReading { count, wait, reset: reset.saturating_sub(passed) })
            }
            (Self::SlidingCounter(counter), Reading::SlidingCounter(counts)) => {
                Reading::SlidingCounter(counter.counts(Some(counts), now).0)
            }
            (Self::FixedWindow(window), Reading::FixedWindow(count)) => {
                Reading::FixedWindow(window.count(Some(count), now).0)
            }
            (Self::Lock(lock), Reading::Lock(denials)) => {
                Reading::Lock(lock.denials(Some(denials), now).0)
            }
            _ => return None,
        })
    }
}
