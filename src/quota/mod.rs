//! How much is allowed: units per period, with a burst.

mod error;

use std::{fmt, time::Duration};

use self::error::Fault;
pub use self::error::QuotaError;
use crate::time::{PICOS_PER_MICRO, PICOS_PER_SEC};

const PICOS_PER_NANO: u128 = 1_000;
const TEN_YEARS: u128 = 10 * 365 * 86_400 * PICOS_PER_SEC;

/// How many units a key may take per period, and how many of them at once.
///
/// The literal constructors ([`Quota::per_minute`] and the like) are `const`: a quota that cannot
/// be kept is a compile error in a constant, and a panic elsewhere. For values that come from
/// a user or a file there are [`Quota::new`] and [`Quota::try_burst`].
///
/// ```
/// use tollgate::Quota;
///
/// const API: Quota = Quota::per_minute(600).burst(50);
/// assert_eq!(API.to_string(), "600-60s-burst50");
/// ```
///
/// # Bounds
///
/// A quota is kept in whole picoseconds per unit, rounded up once when it is made, so that over
/// any length of time no more than `burst + rate × time` is admitted, and no less than that by
/// 0.1 %. It must
///
/// * allow at least one unit, and hold at least one,
/// * have a period of at least one nanosecond per unit and at most ten years,
/// * refill its whole burst within ten years, and in no less than a microsecond, the resolution of
///   the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    quantity: u64,
    period: Duration,
    burst: u64,
    unit: u128,
}

impl Quota {
    /// `quantity` units per second, all of which may be taken at once.
    ///
    /// # Panics
    ///
    /// If the quota is outside the [bounds](Quota#bounds).
    #[must_use]
    pub const fn per_second(quantity: u64) -> Self {
        Self::literal(quantity, 1)
    }

    /// `quantity` units per minute, all of which may be taken at once.
    ///
    /// # Panics
    ///
    /// If the quota is outside the [bounds](Quota#bounds).
    #[must_use]
    pub const fn per_minute(quantity: u64) -> Self {
        Self::literal(quantity, 60)
    }

    /// `quantity` units per hour, all of which may be taken at once.
    ///
    /// # Panics
    ///
    /// If the quota is outside the [bounds](Quota#bounds).
    #[must_use]
    pub const fn per_hour(quantity: u64) -> Self {
        Self::literal(quantity, 3_600)
    }

    /// `quantity` units per 24 hours, all of which may be taken at once.
    ///
    /// # Panics
    ///
    /// If the quota is outside the [bounds](Quota#bounds).
    #[must_use]
    pub const fn per_day(quantity: u64) -> Self {
        Self::literal(quantity, 86_400)
    }

    /// `quantity` units per `period`, all of which may be taken at once.
    ///
    /// # Errors
    ///
    /// If the quota is outside the [bounds](Quota#bounds).
    pub const fn new(quantity: u64, period: Duration) -> Result<Self, QuotaError> {
        Self::checked(quantity, period, quantity)
    }

    /// Holds at most `burst` units, the number that may be taken at once after a rest.
    ///
    /// # Panics
    ///
    /// If the quota is outside the [bounds](Quota#bounds).
    #[must_use]
    pub const fn burst(self, burst: u64) -> Self {
        match self.try_burst(burst) {
            Ok(quota) => quota,
            Err(error) => panic!("{}", error.message().as_str()),
        }
    }

    /// Holds at most `burst` units, the number that may be taken at once after a rest.
    ///
    /// # Errors
    ///
    /// If the quota is outside the [bounds](Quota#bounds).
    pub const fn try_burst(self, burst: u64) -> Result<Self, QuotaError> {
        Self::checked(self.quantity, self.period, burst)
    }

    /// Units per period.
    #[must_use]
    pub const fn quantity(&self) -> u64 {
        self.quantity
    }

    /// The period in which [`quantity`](Self::quantity) units come back.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Units that may be taken at once after a rest.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.burst
    }

    /// The `share` of this quota that one of several instances enforces on its own: the rate times
    /// `share`, and at least one unit at once.
    pub(crate) fn share(&self, share: f64) -> Result<Self, QuotaError> {
        let period =
            Duration::try_from_secs_f64(self.period.as_secs_f64() / share).unwrap_or(Duration::MAX);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of the burst is approximate by nature, and rounds down"
        )]
        let burst = ((self.burst as f64 * share) as u64).max(1);
        Self::checked(self.quantity, period, burst)
    }

    /// Picoseconds until one unit comes back.
    pub(crate) const fn unit(&self) -> u128 {
        self.unit
    }

    /// Picoseconds in which the whole burst comes back, before rounding to whole units' time.
    /// Quotas that differ only in quantity share it.
    pub(crate) const fn timescale(&self) -> u128 {
        (self.burst as u128 * picos(self.period)).div_ceil(self.quantity as u128)
    }

    /// The quota as a number of units in a window of whole seconds, as the `RateLimit-Policy` field
    /// wants it: `q` and `w`.
    pub(crate) fn window(&self) -> (u64, u64) {
        let timescale = self.timescale();
        if timescale >= PICOS_PER_SEC {
            return (self.burst, saturate(timescale.div_ceil(PICOS_PER_SEC)));
        }
        // Not by the unit, which is rounded up: three per second would be two.
        let per_second = u128::from(self.quantity) * PICOS_PER_SEC / picos(self.period);
        (self.burst.max(saturate(per_second)), 1)
    }

    pub(crate) const fn literal(quantity: u64, period_secs: u64) -> Self {
        match Self::new(quantity, Duration::from_secs(period_secs)) {
            Ok(quota) => quota,
            Err(error) => panic!("{}", error.message().as_str()),
        }
    }

    const fn checked(quantity: u64, period: Duration, burst: u64) -> Result<Self, QuotaError> {
        match fault(quantity, period, burst) {
            Some(fault) => Err(QuotaError { quantity, period, burst, fault }),
            None => Ok(Self { quantity, period, burst, unit: unit(quantity, period) }),
        }
    }
}

const fn fault(quantity: u64, period: Duration, burst: u64) -> Option<Fault> {
    if quantity == 0 {
        return Some(Fault::NoQuantity);
    }
    if burst == 0 {
        return Some(Fault::NoBurst);
    }
    if period.is_zero() {
        return Some(Fault::NoPeriod);
    }
    if picos(period) > TEN_YEARS {
        return Some(Fault::LongPeriod);
    }
    let unit = unit(quantity, period);
    if unit < PICOS_PER_NANO {
        return Some(Fault::Fast);
    }
    match unit.checked_mul(burst as u128) {
        Some(refill) if refill < PICOS_PER_MICRO => Some(Fault::SmallBurst),
        Some(refill) if refill <= TEN_YEARS => None,
        _ => Some(Fault::LargeBurst),
    }
}

/// The name of a limit that was given none: `100-60s`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.quantity, Length(picos(self.period)))?;
        if self.burst == self.quantity {
            return Ok(());
        }
        write!(f, "-burst{}", self.burst)
    }
}

/// A span of picoseconds, in the largest unit that shows it whole, but no finer than nanoseconds.
pub(crate) struct Length(pub(crate) u128);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(PICOS_PER_SEC, "s"), (1_000_000_000, "ms"), (PICOS_PER_MICRO, "us")];
        for (size, name) in units {
            if self.0.is_multiple_of(size) {
                return write!(f, "{}{name}", self.0 / size);
            }
        }
        write!(f, "{}ns", self.0.div_ceil(PICOS_PER_NANO))
    }
}

/// Picoseconds until one unit comes back. Rounded up: never more than the quantity comes back in
/// a period.
const fn unit(quantity: u64, period: Duration) -> u128 {
    picos(period).div_ceil(quantity as u128)
}

const fn picos(span: Duration) -> u128 {
    span.as_nanos() * PICOS_PER_NANO
}

fn saturate(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
