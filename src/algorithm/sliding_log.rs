use std::collections::VecDeque;

use crate::{
    decision::{Stamp, Standing},
    time::Timestamp,
};

/// The most that one request may take from a log.
pub(crate) const MAX_LOG_COST: u64 = 1_000;

/// The moments of all units of the last window, for each key. Exact: in no window of time does more
/// than the limit pass. It keeps every unit, so limits are at most 100,000.
///
/// What is denied is not recorded: a client that keeps asking still gets its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    limit: u64,
    window: u64,
}

/// The moments at which units were taken, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// Microseconds since the Unix epoch, each with the number of the last unit that was taken then.
    entries: VecDeque<(u64, u64)>,
    /// The number of the unit before the first one.
    base: u64,
}

/// What a request finds in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogReading {
    /// Units in the window, before the request.
    pub count: u64,
    /// Microseconds from then until one more request of the same cost passes, if it ever does.
    pub wait: u64,
    /// Microseconds until the last unit falls out of the window.
    pub reset: u64,
}

impl SlidingLog {
    /// `limit` units in any `window` microseconds.
    pub(crate) const fn new(limit: u64, window: u64) -> Self {
        Self { limit, window }
    }

    /// Units that a request may take in one window.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window, in microseconds.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Brings moments that lie after `now`, left by a clock that stepped back, to `now`: a key would
    /// else be locked for the whole step. Whether there were any.
    pub fn settle(&self, moments: &mut Moments, now: Timestamp) -> bool {
        let now = now.as_micros();
        let mut ahead = false;
        for (moment, _) in moments.entries.iter_mut().rev() {
            if *moment <= now {
                break;
            }
            *moment = now;
            ahead = true;
        }
        ahead
    }

    /// Whether `cost` units are left beside `count`. A cost of 0 always fits.
    #[must_use]
    pub const fn fits(&self, count: u64, cost: u64) -> bool {
        cost == 0 || count.saturating_add(self.clamp(cost)) <= self.limit
    }

    /// Takes `cost` units at `now`, in settled moments, and forgets what fell out of the window.
    pub fn charge(&self, moments: &mut Moments, cost: u64, now: Timestamp) {
        let (dead, before) = self.dead(moments, now);
        moments.entries.drain(..dead);
        moments.base = before;
        let last = moments.last() + cost;
        match moments.entries.back_mut() {
            Some((moment, number)) if *moment == now.as_micros() => *number = last,
            _ => moments.entries.push_back((now.as_micros(), last)),
        }
    }

    /// Gives back up to `units` of those taken at the moment of a charge, or of the latest, if that lies
    /// in the window of `now`. Whether there were any.
    pub fn refund(&self, moments: &mut Moments, units: u64, stamp: Stamp, now: Timestamp) -> bool {
        if stamp == Stamp::LATEST {
            let (_, before) = self.dead(moments, now);
            return moments.remove_latest(units, before);
        }
        let charged = stamp.parts().0;
        let age = now.as_micros().checked_sub(charged);
        if age.is_none_or(|age| age >= self.window) {
            return false;
        }
        moments.remove(charged, units)
    }

    /// What a request of `cost` at `now` finds in settled moments, and what it leaves if it is
    /// `admitted`.
    #[must_use]
    pub fn reading(
        &self,
        moments: Option<&Moments>,
        cost: u64,
        admitted: bool,
        now: Timestamp,
    ) -> LogReading {
        let none = Moments::default();
        let moments = moments.unwrap_or(&none);
        let age = |moment: u64| now.as_micros().saturating_sub(moment);
        let falls_out = |moment: u64| self.window.saturating_sub(age(moment));
        let (_, before) = self.dead(moments, now);
        let count = moments.last() - before;
        let after = count + if admitted { cost } else { 0 };
        let surplus = (after + self.clamp(cost.max(1))).saturating_sub(self.limit);
        let freeing = moments.entries.partition_point(|(_, number)| *number < before + surplus);
        // Behind what was there stands what the request itself took.
        let freeing = moments.entries.get(freeing).map_or(now.as_micros(), |(moment, _)| *moment);
        let last = if admitted && cost > 0 {
            now.as_micros()
        } else {
            moments.entries.back().map_or(0, |(moment, _)| *moment)
        };
        LogReading {
            count,
            wait: if surplus == 0 { 0 } else { falls_out(freeing) },
            reset: falls_out(last),
        }
    }

    /// Where a key stands after a request of `cost`.
    #[must_use]
    pub fn standing(
        &self,
        reading: LogReading,
        cost: u64,
        admitted: bool,
        now: Timestamp,
    ) -> Standing {
        let after = reading.count.saturating_add(if admitted { cost } else { 0 });
        Standing {
            fits: self.fits(reading.count, cost),
            remaining: self.limit.saturating_sub(after),
            wait: (self.clamp(cost) <= self.limit).then_some(reading.wait),
            reset: reading.reset,
            stamp: Stamp::new(now.as_micros(), 0),
        }
    }

    /// The moment at which nothing is left in the window, in microseconds since the Unix epoch.
    pub(crate) fn fresh_at(&self, moments: &Moments) -> u64 {
        moments.entries.back().map_or(0, |(moment, _)| moment.saturating_add(self.window))
    }

    /// A cost that never fits counts as one above the limit: no cost overflows, and none adds more
    /// entries than one call should.
    pub(crate) const fn clamp(&self, cost: u64) -> u64 {
        if cost > self.limit || cost > MAX_LOG_COST { self.limit + 1 } else { cost }
    }

    /// How many entries fell out of the window, and the number of their last unit.
    fn dead(&self, moments: &Moments, now: Timestamp) -> (usize, u64) {
        let gone =
            |(moment, _): &(u64, u64)| now.as_micros().saturating_sub(*moment) >= self.window;
        let dead = moments.entries.partition_point(gone);
        let before = dead.checked_sub(1).and_then(|last| moments.entries.get(last));
        (dead, before.map_or(moments.base, |(_, number)| *number))
    }
}

impl Moments {
    /// The moment of each unit, in microseconds since the Unix epoch, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let mut before = self.base;
        self.entries.iter().flat_map(move |(moment, number)| {
            let units = number - std::mem::replace(&mut before, *number);
            std::iter::repeat_n(*moment, usize::try_from(units).unwrap_or(usize::MAX))
        })
    }

    /// Removes up to `units` of those taken at `moment`. Whether there were any.
    fn remove(&mut self, moment: u64, units: u64) -> bool {
        let first = self.entries.partition_point(|(taken, _)| *taken < moment);
        let behind = self.entries.partition_point(|(taken, _)| *taken <= moment);
        let number = |at: usize| at.checked_sub(1).map_or(self.base, |at| self.entries[at].1);
        let before = number(first);
        let gone = units.min(number(behind) - before);
        for (_, number) in self.entries.iter_mut().skip(first) {
            *number = before.max(number.saturating_sub(gone));
        }
        let emptied =
            self.entries.iter().skip(first).take_while(|(_, number)| *number == before).count();
        self.entries.drain(first..first + emptied);
        gone > 0
    }

    /// Removes up to `units` of the latest, and none up to the one of the number `before`. Whether there
    /// were any.
    fn remove_latest(&mut self, units: u64, before: u64) -> bool {
        let last = self.last().saturating_sub(units).max(before);
        if last == self.last() {
            return false;
        }
        let whole = self.entries.partition_point(|(_, number)| *number <= last);
        let numbered = whole.checked_sub(1).map_or(self.base, |at| self.entries[at].1);
        match self.entries.get_mut(whole) {
            // Some of that moment are left.
            Some((_, number)) if numbered < last => {
                *number = last;
                self.entries.truncate(whole + 1);
            }
            _ => self.entries.truncate(whole),
        }
        true
    }

    /// The number of the last unit.
    fn last(&self) -> u64 {
        self.entries.back().map_or(self.base, |(_, number)| *number)
    }
}
