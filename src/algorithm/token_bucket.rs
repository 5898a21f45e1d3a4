use crate::{
    decision::{Stamp, Standing},
    quota::Quota,
    time::{PICOS_PER_MICRO, Timestamp},
};

/// A bucket that holds `burst` tokens and gets one back every `period / quantity`.
///
/// Kept as one number, the time at which the bucket is full again: the generic cell rate algorithm
/// (ITU-T I.371), in which a token is a span of time. The state of a key that was never used, or
/// that has come back in full, is none at all.
///
/// Over any time `t`, a key is admitted at most `burst + t × quantity / period` units.
///
/// Times are in picoseconds: whole microseconds would lose 25 % of a rate of 333,333 per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    unit: u128,
    burst: u64,
}

/// The time at which a bucket is full again, in picoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FullAt(u128);

/// How long a bucket takes to be full again, in picoseconds: zero when it is full, the whole
/// capacity when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backlog(u128);

impl TokenBucket {
    /// The bucket that enforces `quota`.
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self { unit: quota.unit(), burst: quota.capacity() }
    }

    /// Picoseconds that `cost` units take to come back. A cost above the burst never fits, so it
    /// counts as one above: no cost overflows.
    #[inline]
    #[must_use]
    pub fn increment(&self, cost: u64) -> u128 {
        self.unit * u128::from(cost.min(self.burst + 1))
    }

    /// Picoseconds that an empty bucket takes to be full.
    #[must_use]
    pub const fn capacity(&self) -> u128 {
        self.unit * self.burst as u128
    }

    /// The backlog at `now` of a bucket in `state`, and whether that state lay further ahead than
    /// the bucket is deep.
    ///
    /// That happens when the clock stepped back. The state is then to be written anew, by
    /// [`state`](Self::state), also by a denied request: the key would else be locked for the whole
    /// step.
    #[must_use]
    pub fn backlog(&self, state: Option<FullAt>, now: Timestamp) -> (Backlog, bool) {
        let Some(FullAt(full_at)) = state else { return (Backlog(0), false) };
        let backlog = full_at.saturating_sub(now.as_picos());
        if backlog > self.capacity() {
            return (Backlog(self.capacity()), true);
        }
        (Backlog(backlog), false)
    }

    /// Whether `cost` units are there. A cost of 0 always fits.
    #[must_use]
    pub fn fits(&self, backlog: Backlog, cost: u64) -> bool {
        backlog.0 + self.increment(cost) <= self.capacity()
    }

    /// The state of a bucket with `backlog` at `now`, after `cost` units were taken from it.
    #[must_use]
    pub fn state(&self, backlog: Backlog, cost: u64, now: Timestamp) -> FullAt {
        FullAt(now.as_picos() + backlog.0 + self.increment(cost))
    }

    /// The state after `units` of a charge were given back, as far as they have not come back by
    /// themselves: the charge ends at its stamp, and the latest at the end of all. Gives back nothing
    /// below a full bucket.
    #[must_use]
    pub fn refunded(&self, found: Backlog, units: u64, stamp: Stamp, now: Timestamp) -> FullAt {
        let left = FullAt::from(stamp).0.saturating_sub(now.as_picos());
        let credit = self.increment(units).min(left);
        FullAt(now.as_picos() + found.0.saturating_sub(credit))
    }

    /// The stamp of what is left of a charge after `units` of it were given back: the last to come
    /// back by themselves.
    #[must_use]
    pub fn rest(&self, stamp: Stamp, units: u64) -> Stamp {
        FullAt(FullAt::from(stamp).0.saturating_sub(self.increment(units))).into()
    }

    /// Whole units in a span.
    pub(super) fn units_in(&self, span: Backlog) -> u64 {
        u64::try_from(div(span.0, self.unit)).unwrap_or(u64::MAX)
    }

    /// A backlog without so many of its units.
    pub(super) fn without(&self, backlog: Backlog, units: u64) -> Backlog {
        Backlog(backlog.0.saturating_sub(self.unit.saturating_mul(u128::from(units))))
    }

    /// Where a key stands after a request of `cost` that found `backlog` at `now`: charged if the
    /// whole request was `admitted`, untouched otherwise.
    #[inline]
    #[must_use]
    pub fn standing(
        &self,
        backlog: Backlog,
        cost: u64,
        admitted: bool,
        now: Timestamp,
    ) -> Standing {
        let (taken, capacity) = (self.increment(cost), self.capacity());
        let after = if admitted { backlog.0 + taken } else { backlog.0 };
        let free = capacity.saturating_sub(after);
        // What waits is a request of the same cost; one that only looked waits for a unit.
        let (next, lasts) = if cost == 0 { (1, self.unit) } else { (cost, taken) };
        Standing {
            fits: backlog.0 + taken <= capacity,
            remaining: u64::try_from(div(free, self.unit)).unwrap_or(u64::MAX),
            wait: (next <= self.burst).then(|| micros(lasts.saturating_sub(free))),
            reset: micros(after),
            stamp: stamp(now, after),
        }
    }
}

/// The moment so many picoseconds after `now`.
fn stamp(now: Timestamp, after: u128) -> Stamp {
    let (micros, picos) = split(after);
    Stamp::new(now.as_micros().saturating_add(micros), picos)
}

impl Backlog {
    /// A backlog of `micros` microseconds and `picos` picoseconds.
    #[must_use]
    pub fn new(micros: u64, picos: u32) -> Self {
        Self(u128::from(micros) * PICOS_PER_MICRO + u128::from(picos))
    }
}

impl From<Stamp> for FullAt {
    fn from(stamp: Stamp) -> Self {
        let (micros, picos) = stamp.parts();
        Self(u128::from(micros) * PICOS_PER_MICRO + u128::from(picos))
    }
}

impl From<FullAt> for Stamp {
    fn from(FullAt(picos): FullAt) -> Self {
        let (micros, rest) = split(picos);
        Self::new(micros, rest)
    }
}

impl Backlog {
    /// What is left of it after so much time.
    #[must_use]
    pub const fn saturating_sub(self, passed: Self) -> Self {
        Self(self.0.saturating_sub(passed.0))
    }
}

impl FullAt {
    /// Microseconds since the Unix epoch, rounded up.
    pub(super) fn micros_ceil(self) -> u64 {
        micros(self.0)
    }

    /// Whole microseconds since the Unix epoch, and the picoseconds above them.
    #[must_use]
    pub const fn parts(self) -> (u128, u128) {
        (self.0 / PICOS_PER_MICRO, self.0 % PICOS_PER_MICRO)
    }
}

/// Whole microseconds, rounded up: who waits for them waits long enough.
fn micros(picos: u128) -> u64 {
    split(picos + (PICOS_PER_MICRO - 1)).0
}

/// Whole microseconds, and the picoseconds above them.
fn split(picos: u128) -> (u64, u32) {
    let micros = u64::try_from(div(picos, PICOS_PER_MICRO)).unwrap_or(u64::MAX);
    // Less than a million.
    (micros, (picos - u128::from(micros) * PICOS_PER_MICRO) as u32)
}

/// Division that is cheap where both numbers fit in 64 bits without the factors of two that they are
/// divided by in any case, as spans do that are whole microseconds long.
#[inline]
fn div(picos: u128, by: u128) -> u128 {
    let twos = by.trailing_zeros();
    match (u64::try_from(picos >> twos), u64::try_from(by >> twos)) {
        (Ok(picos), Ok(by)) => u128::from(picos / by),
        _ => picos / by,
    }
}
