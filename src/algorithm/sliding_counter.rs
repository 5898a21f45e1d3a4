use crate::{
    decision::{Stamp, Standing},
    time::Timestamp,
};

/// Two counts for each key, of this window and of the one before. The earlier one weighs as much as
/// the sliding window still overlaps it.
///
/// It takes its units in the window before to have been spread evenly, which they may not have been:
/// over any one window, up to twice the limit may pass in the worst case.
///
/// In integers: a window has at most 2^20 ticks, so that every product stays exact in a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounter {
    limit: u64,
    window: u64,
    tick: u64,
}

/// What was counted in a window and in the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The first moment of the window.
    pub start: Timestamp,
    /// Units taken in it.
    pub current: u64,
    /// Units taken in the window before.
    pub previous: u64,
}

const TICKS: u64 = 1 << 20;

impl SlidingCounter {
    /// `limit` units, at most 2^31, in any `window` microseconds.
    pub(crate) const fn new(limit: u64, window: u64) -> Self {
        Self { limit, window, tick: window.div_ceil(TICKS) }
    }

    /// Units that a request may take in one window.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window and the tick, in microseconds.
    #[must_use]
    pub const fn spans(&self) -> (u64, u64) {
        (self.window, self.tick)
    }

    /// What counts at `now`, and whether the state lay in a later window: the clock stepped back.
    #[must_use]
    pub const fn counts(&self, state: Option<Counts>, now: Timestamp) -> (Counts, bool) {
        let start = now.as_micros() - now.as_micros() % self.window;
        let (current, previous, ahead) = match state {
            Some(state) if state.start.as_micros() >= start => {
                (state.current, state.previous, state.start.as_micros() > start)
            }
            Some(state) if start - state.start.as_micros() == self.window => {
                (0, state.current, false)
            }
            _ => (0, 0, false),
        };
        (Counts { start: Timestamp::from_micros(start), current, previous }, ahead)
    }

    /// Whether `cost` units are left at `now`.
    #[must_use]
    pub const fn fits(&self, counts: Counts, cost: u64, now: Timestamp) -> bool {
        if cost == 0 {
            return true;
        }
        let weighed = counts.previous * self.overlap(now);
        weighed + (counts.current + self.clamp(cost)) * self.ticks() <= self.limit * self.ticks()
    }

    /// The counts after `cost` units were taken.
    #[must_use]
    pub const fn charged(&self, counts: Counts, cost: u64) -> Counts {
        Counts { current: counts.current + self.clamp(cost), ..counts }
    }

    /// The counts after `units` of a charge were given back, if it was made in the window of `now` or
    /// in the one before. The latest are those of this window, and then those before.
    #[must_use]
    pub fn refunded(&self, counts: Counts, units: u64, stamp: Stamp) -> Counts {
        if stamp == Stamp::LATEST {
            let earlier = units.saturating_sub(counts.current);
            return Counts {
                current: counts.current.saturating_sub(units),
                previous: counts.previous.saturating_sub(earlier),
                ..counts
            };
        }
        let (charged, start) = (stamp.parts().0, counts.start.as_micros());
        let charged = charged - charged % self.window;
        if charged == start {
            Counts { current: counts.current.saturating_sub(units), ..counts }
        } else if charged.saturating_add(self.window) == start {
            Counts { previous: counts.previous.saturating_sub(units), ..counts }
        } else {
            counts
        }
    }

    /// Where a key stands after a request of `cost` that found `current` and `previous` at `now`.
    #[must_use]
    pub fn standing(&self, found: Counts, cost: u64, admitted: bool, now: Timestamp) -> Standing {
        let fits = self.fits(found, cost, now);
        let after = if admitted { self.charged(found, cost) } else { found };
        let taken = after.previous * self.overlap(now) + after.current * self.ticks();
        let free = (self.limit * self.ticks()).saturating_sub(taken);
        let next = cost.max(1);
        Standing {
            fits,
            remaining: free / self.ticks(),
            wait: (next <= self.limit).then(|| self.wait(after, next, now)),
            reset: self.fresh_at(after).saturating_sub(now.as_micros()),
            stamp: Stamp::new(now.as_micros(), 0),
        }
    }

    /// When the counts weigh nothing any more, in microseconds since the Unix epoch.
    pub(crate) const fn fresh_at(&self, counts: Counts) -> u64 {
        let windows = if counts.current > 0 {
            2
        } else if counts.previous > 0 {
            1
        } else {
            return 0;
        };
        counts.start.as_micros().saturating_add(windows * self.window)
    }

    /// Microseconds until `cost` units, no more than the limit, are left.
    fn wait(&self, counts: Counts, cost: u64, now: Timestamp) -> u64 {
        if self.fits(counts, cost, now) {
            return 0;
        }
        let start = counts.start.as_micros();
        // In this window, the earlier one has to weigh less; in the next, this one has to.
        let (begins, heavy, room) = match self.limit.checked_sub(counts.current + cost) {
            Some(room) => (start, counts.previous, room),
            None => (start.saturating_add(self.window), counts.current, self.limit - cost),
        };
        let ticks = self.ticks() - (room * self.ticks()).checked_div(heavy).unwrap_or(0);
        let moment = begins.saturating_add((ticks * self.tick).min(self.window));
        moment.saturating_sub(now.as_micros())
    }

    /// Ticks of the earlier window that the sliding one still overlaps.
    const fn overlap(&self, now: Timestamp) -> u64 {
        self.ticks() - now.as_micros() % self.window / self.tick
    }

    const fn ticks(&self) -> u64 {
        self.window.div_ceil(self.tick)
    }

    /// A cost above the limit never fits, so it counts as one above: no product overflows.
    pub(crate) const fn clamp(&self, cost: u64) -> u64 {
        if cost > self.limit { self.limit + 1 } else { cost }
    }
}
