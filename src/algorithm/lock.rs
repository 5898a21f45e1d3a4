use crate::{
    decision::{Stamp, Standing},
    time::Timestamp,
};

/// Locks a key for a time once another limit has denied it so many times. It guards the hit that
/// stands before it in a request, and what it counts are the denials of that one: nothing is charged
/// to it when a request is admitted, and it is what a denied request may change.
///
/// Denials are forgotten a fixed time after the first of them. A request that meets a locked key is
/// denied and not counted, so that the lock ends when it was to, however often a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    after: u64,
    length: u64,
    memory: u64,
}

/// What is known of a key's denials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Denials {
    /// When they are forgotten, or, if they are enough for a lock, when that ends.
    pub until: Timestamp,
    /// How many there were.
    pub count: u64,
}

impl Lock {
    /// A lock of `length` microseconds, set by the denial number `after` within `memory`, which is no
    /// longer.
    pub(crate) const fn new(after: u64, length: u64, memory: u64) -> Self {
        Self { after, length, memory }
    }

    /// The denial that locks.
    #[must_use]
    pub const fn after(&self) -> u64 {
        self.after
    }

    /// How long the lock lasts, and how long denials are remembered without one, in microseconds.
    #[must_use]
    pub const fn spans(&self) -> (u64, u64) {
        (self.length, self.memory)
    }

    /// The denials that count at `now`, and whether they lay further ahead than a lock is long: the
    /// clock stepped back, or locks were longer.
    #[must_use]
    pub fn denials(&self, state: Option<Denials>, now: Timestamp) -> (Denials, bool) {
        let longest = now.as_micros().saturating_add(self.length);
        match state {
            Some(Denials { until, count }) if until > now => {
                let bound = until.as_micros().min(longest);
                (Denials { until: Timestamp::from_micros(bound), count }, bound < until.as_micros())
            }
            _ => (Denials { until: now, count: 0 }, false),
        }
    }

    /// The denials after one more, at `now`. None, if the key is locked already.
    #[must_use]
    pub const fn denied(&self, found: Denials, now: Timestamp) -> Option<Denials> {
        if found.count >= self.after {
            return None;
        }
        let count = found.count + 1;
        let until = if count >= self.after {
            now.as_micros().saturating_add(self.length)
        } else if found.count == 0 {
            now.as_micros().saturating_add(self.memory)
        } else {
            found.until.as_micros()
        };
        Some(Denials { until: Timestamp::from_micros(until), count })
    }

    /// Whether a key with these denials is not locked. Who only looks is not denied.
    #[must_use]
    pub const fn fits(&self, found: Denials, cost: u64) -> bool {
        cost == 0 || found.count < self.after
    }

    /// Where a key stands: how many more denials lock it, or how long it is locked.
    #[must_use]
    pub fn standing(&self, found: Denials, cost: u64, now: Timestamp) -> Standing {
        let left = found.until.as_micros().saturating_sub(now.as_micros());
        let remaining = self.after.saturating_sub(found.count);
        Standing {
            fits: self.fits(found, cost),
            remaining,
            wait: Some(if remaining == 0 { left } else { 0 }),
            reset: if found.count == 0 { 0 } else { left },
            stamp: Stamp::default(),
        }
    }
}
