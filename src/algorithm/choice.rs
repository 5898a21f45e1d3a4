use super::{
    Calendar, FixedWindow, Meter, SlidingCounter, SlidingLog, Span, TokenBucket,
    sliding_log::MAX_LOG_COST,
};
use crate::{
    quota::{Quota, QuotaError},
    time::PICOS_PER_MICRO,
};

const MAX_LOG: u64 = 100_000;
const MAX_COUNTER: u64 = 1 << 31;
/// The script counts in doubles.
const MAX_WINDOW: u64 = 1 << 52;

/// How a limit counts.
///
/// | algorithm | over any time | memory for a key | choose it |
/// |---|---|---|---|
/// | token bucket | burst + rate × time | one number | unless you need another: it is even and cheap |
/// | sliding log | limit in any window, exactly | one entry for each unit | for small limits that must be exact |
/// | sliding counter | up to twice the limit in a window, at worst | three numbers | for large limits over a window |
/// | fixed window | limit for each window, twice that over a boundary | two numbers | where a plan says "per hour, by the clock" |
/// | calendar | limit for each day, week or month in UTC | two numbers | for quotas that people are billed by |
///
/// The [guide](crate::docs::algorithms) has what each costs, and what becomes of it when it is
/// changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Units come back evenly; a burst of them may be taken at once.
    #[default]
    TokenBucket,
    /// At most the quantity in any period. The quantity is at most 100,000, the cost 1,000.
    SlidingLog,
    /// About the quantity in any period, by two counts. The quantity is at most 2^31.
    SlidingCounter,
    /// At most the quantity in each period of the clock, counted from the Unix epoch.
    FixedWindow,
    /// At most the quantity in each unit of the calendar, in UTC.
    Calendar(Calendar),
}

impl Algorithm {
    /// The arithmetic for `quota`, for stores and their tests. What it cannot keep exactly, a
    /// [`Policy`](crate::Policy) refuses.
    #[must_use]
    pub fn meter(self, quota: Quota) -> Meter {
        let (limit, micros) = (quota.quantity(), micros(quota));
        match self {
            Self::TokenBucket => Meter::TokenBucket(TokenBucket::new(quota)),
            Self::SlidingLog => Meter::SlidingLog(SlidingLog::new(limit, micros)),
            Self::SlidingCounter => Meter::SlidingCounter(SlidingCounter::new(limit, micros)),
            Self::FixedWindow => Meter::FixedWindow(FixedWindow::new(limit, Span::Micros(micros))),
            Self::Calendar(unit) => {
                Meter::FixedWindow(FixedWindow::new(limit, Span::Calendar(unit)))
            }
        }
    }

    /// The algorithm in the names of states.
    pub(crate) const fn tag(&self) -> &str {
        match self {
            Self::TokenBucket => "tb",
            Self::SlidingLog => "sl",
            Self::SlidingCounter => "sc",
            Self::FixedWindow => "fw",
            Self::Calendar(Calendar::Day) => "cd",
            Self::Calendar(Calendar::Week) => "cw",
            Self::Calendar(Calendar::Month) => "cm",
        }
    }

    /// The share of `quota` that one of several instances enforces on its own: of the rate where
    /// units come back evenly, otherwise of the quantity; at least one unit.
    pub(crate) fn share(self, quota: Quota, share: f64) -> Result<Quota, QuotaError> {
        if self == Self::TokenBucket {
            return quota.share(share);
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a quantity is approximate by nature, and rounds down"
        )]
        let quantity = ((quota.quantity() as f64 * share) as u64).max(1);
        Quota::new(quantity, quota.period())
    }

    /// Whether limits of `quota` and `cost` can be kept.
    pub(crate) fn check(self, quota: Quota, cost: u64) -> Result<(), String> {
        let (quantity, burst) = (quota.quantity(), quota.capacity());
        if self == Self::TokenBucket {
            return Ok(());
        }
        if burst != quantity {
            return Err(format!(
                "a burst of {burst} beside a quantity of {quantity}: only a token bucket has a burst"
            ));
        }
        if !quota.timescale().is_multiple_of(PICOS_PER_MICRO) {
            let period = quota.period();
            return Err(format!("a period of {period:?}: a window must be whole microseconds"));
        }
        let most = match self {
            Self::SlidingLog => MAX_LOG,
            Self::SlidingCounter => MAX_COUNTER,
            _ => MAX_WINDOW,
        };
        if quantity > most {
            return Err(format!(
                "a quantity of {quantity}: with this algorithm it is at most {most}"
            ));
        }
        match self {
            Self::SlidingLog if cost > MAX_LOG_COST => {
                Err(format!("a cost of {cost}: a sliding log takes at most {MAX_LOG_COST} at once"))
            }
            Self::Calendar(unit) if quota.period() != unit.nominal() => Err(format!(
                "a period of {:?}: this unit of the calendar has {:?}; `Limit::calendar` knows it",
                quota.period(),
                unit.nominal()
            )),
            _ => Ok(()),
        }
    }
}

/// The period in whole microseconds, at least one. [`Algorithm::check`] refuses others.
fn micros(quota: Quota) -> u64 {
    let span = quota.timescale().div_ceil(PICOS_PER_MICRO).max(1);
    u64::try_from(span).unwrap_or(u64::MAX)
}
