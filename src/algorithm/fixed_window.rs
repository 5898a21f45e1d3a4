use super::Calendar;
use crate::{
    decision::{Stamp, Standing},
    time::Timestamp,
};

/// A count for each window of time, from the clock's own boundaries: full hours, say, or calendar
/// months. It begins anew with each window.
///
/// Exact for each window. Over a boundary, up to twice the limit may pass in a short time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    limit: u64,
    span: Span,
}

/// What a window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Span {
    /// Of so many microseconds, counted from the Unix epoch.
    Micros(u64),
    /// Of a unit of the calendar.
    Calendar(Calendar),
}

/// What was counted in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCount {
    /// The first moment of the window.
    pub start: Timestamp,
    /// Units taken in it.
    pub used: u64,
}

impl FixedWindow {
    /// `limit` units in each window of this span.
    pub(crate) const fn new(limit: u64, span: Span) -> Self {
        Self { limit, span }
    }

    /// Units that a request may take in one window.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// What the window follows.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// The first moment of the window that `now` lies in, and of the next.
    #[must_use]
    pub fn around(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        match self.span {
            Span::Calendar(calendar) => calendar.around(now),
            Span::Micros(micros) => {
                let start = now.as_micros() - now.as_micros() % micros;
                (
                    Timestamp::from_micros(start),
                    Timestamp::from_micros(start.saturating_add(micros)),
                )
            }
        }
    }

    /// What counts at `now`, and whether the state lay in a later window: the clock stepped back. What
    /// was counted then counts in the window of `now`, so that a step neither frees a key nor locks it
    /// for longer than that window.
    #[must_use]
    pub fn count(&self, state: Option<WindowCount>, now: Timestamp) -> (WindowCount, bool) {
        let (start, _) = self.around(now);
        match state {
            Some(WindowCount { start: last, used }) if last >= start => {
                (WindowCount { start, used }, last > start)
            }
            _ => (WindowCount { start, used: 0 }, false),
        }
    }

    /// Whether `cost` units are left.
    #[must_use]
    pub const fn fits(&self, count: WindowCount, cost: u64) -> bool {
        cost == 0 || count.used.saturating_add(self.clamp(cost)) <= self.limit
    }

    /// The count after `cost` units were taken.
    #[must_use]
    pub const fn charged(&self, count: WindowCount, cost: u64) -> WindowCount {
        WindowCount { used: count.used + self.clamp(cost), ..count }
    }

    /// The count after `units` of a charge were given back, if it was made in the window of `now`, as
    /// the latest are.
    #[must_use]
    pub fn refunded(
        &self,
        count: WindowCount,
        units: u64,
        stamp: Stamp,
        now: Timestamp,
    ) -> WindowCount {
        let charged = self.around(Timestamp::from_micros(stamp.parts().0));
        if stamp != Stamp::LATEST && charged.0 != self.around(now).0 {
            return count;
        }
        WindowCount { used: count.used.saturating_sub(units), ..count }
    }

    /// Where a key stands after a request of `cost` that found `used` units taken at `now`.
    #[must_use]
    pub fn standing(&self, used: u64, cost: u64, admitted: bool, now: Timestamp) -> Standing {
        let (start, end) = self.around(now);
        let count = WindowCount { start, used };
        let fits = self.fits(count, cost);
        let after = if admitted { self.charged(count, cost).used } else { used };
        let left = end.as_micros() - now.as_micros();
        let next = cost.max(1);
        let now_fits = after.saturating_add(next) <= self.limit;
        Standing {
            fits,
            remaining: self.limit.saturating_sub(after),
            wait: (next <= self.limit).then_some(if now_fits { 0 } else { left }),
            reset: if after == 0 { 0 } else { left },
            stamp: Stamp::new(now.as_micros(), 0),
        }
    }

    /// The moment at which a count says no more than none, in microseconds since the Unix epoch.
    pub(crate) fn fresh_at(&self, count: WindowCount) -> u64 {
        if count.used == 0 { 0 } else { self.around(count.start).1.as_micros() }
    }

    /// A cost above the limit never fits, so it counts as one above: no cost overflows.
    pub(crate) const fn clamp(&self, cost: u64) -> u64 {
        if cost > self.limit { self.limit + 1 } else { cost }
    }
}
