//! How much is allowed: units per period, with a burst.

use std::{fmt, time::Duration};

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
        (self.burst.max(saturate(PICOS_PER_SEC / self.unit)), 1)
    }

    const fn literal(quantity: u64, period_secs: u64) -> Self {
        match Self::new(quantity, Duration::from_secs(period_secs)) {
            Ok(quota) => quota,
            Err(error) => panic!("{}", error.message().as_str()),
        }
    }

    const fn checked(quantity: u64, period: Duration, burst: u64) -> Result<Self, QuotaError> {
        if quantity == 0 {
            return fail(quantity, period, burst, Fault::NoQuantity);
        }
        if burst == 0 {
            return fail(quantity, period, burst, Fault::NoBurst);
        }
        let length = picos(period);
        if length == 0 {
            return fail(quantity, period, burst, Fault::NoPeriod);
        }
        if length > TEN_YEARS {
            return fail(quantity, period, burst, Fault::LongPeriod);
        }
        let unit = length.div_ceil(quantity as u128);
        if unit < PICOS_PER_NANO {
            return fail(quantity, period, burst, Fault::Fast);
        }
        match unit.checked_mul(burst as u128) {
            Some(refill) if refill < PICOS_PER_MICRO => {
                fail(quantity, period, burst, Fault::SmallBurst)
            }
            Some(refill) if refill <= TEN_YEARS => Ok(Self { quantity, period, burst, unit }),
            _ => fail(quantity, period, burst, Fault::LargeBurst),
        }
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

/// A quota that cannot be kept; the message names the value and the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaError {
    quantity: u64,
    period: Duration,
    burst: u64,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    NoQuantity,
    NoPeriod,
    LongPeriod,
    NoBurst,
    Fast,
    SmallBurst,
    LargeBurst,
}

const fn fail(
    quantity: u64,
    period: Duration,
    burst: u64,
    fault: Fault,
) -> Result<Quota, QuotaError> {
    Err(QuotaError { quantity, period, burst, fault })
}

impl QuotaError {
    const fn message(&self) -> Message {
        let quota = Message::new()
            .text("a quota of ")
            .number(self.quantity as u128)
            .text(" per ")
            .length(picos(self.period))
            .text(" with a burst of ")
            .number(self.burst as u128);
        match self.fault {
            Fault::NoQuantity => quota.text(": the quantity must be at least 1"),
            Fault::NoPeriod => quota.text(": the period must be longer than 0"),
            Fault::LongPeriod => quota.text(": the period must be at most 10 years (315360000 s)"),
            Fault::NoBurst => quota.text(": the burst must be at least 1"),
            Fault::Fast => quota
                .text(": a unit may come back at most every nanosecond; for this period the quantity must be at most ")
                .number(picos(self.period) / PICOS_PER_NANO),
            Fault::SmallBurst => quota
                .text(": the burst must hold what comes back in one microsecond, at least ")
                .number(PICOS_PER_MICRO.div_ceil(self.unit())),
            Fault::LargeBurst => quota
                .text(": the whole burst must come back within 10 years (315360000 s); at this rate the burst must be at most ")
                .number(TEN_YEARS / self.unit()),
        }
    }

    const fn unit(&self) -> u128 {
        picos(self.period).div_ceil(self.quantity as u128)
    }
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().as_str())
    }
}

impl std::error::Error for QuotaError {}

/// A message that can be put together in a constant, where formatting is not possible.
struct Message {
    bytes: [u8; 320],
    len: usize,
}

impl Message {
    const fn new() -> Self {
        Self { bytes: [0; 320], len: 0 }
    }

    const fn text(mut self, text: &str) -> Self {
        let mut at = 0;
        while at < text.len() && self.len < self.bytes.len() {
            self.bytes[self.len] = text.as_bytes()[at];
            self.len += 1;
            at += 1;
        }
        self
    }

    const fn number(self, number: u128) -> Self {
        let rest = if number >= 10 { self.number(number / 10) } else { self };
        let digit = [b'0' + (number % 10) as u8];
        match std::str::from_utf8(&digit) {
            Ok(digit) => rest.text(digit),
            Err(_) => rest,
        }
    }

    const fn length(self, picos: u128) -> Self {
        if picos.is_multiple_of(PICOS_PER_SEC) {
            return self.number(picos / PICOS_PER_SEC).text(" s");
        }
        self.number(picos / PICOS_PER_NANO).text(" ns")
    }

    const fn as_str(&self) -> &str {
        let (text, _) = self.bytes.split_at(self.len);
        match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(_) => "a quota that cannot be kept",
        }
    }
}

const fn picos(span: Duration) -> u128 {
    span.as_nanos() * PICOS_PER_NANO
}

fn saturate(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
