use std::time::Duration;

use http::StatusCode;

use super::PolicyError;
use crate::{
    algorithm::Lock,
    quota::Quota,
    time::{MICROS_PER_SEC, PICOS_PER_MICRO, micros},
};

/// Ten years, as for quotas.
const MAX_LENGTH: u64 = 10 * 365 * 86_400 * MICROS_PER_SEC;
const MAX_DENIALS: u64 = 1_000_000_000;

/// Locks a key of a [`Limit`](crate::Limit) for a time, once the limit has denied it.
///
/// A locked key is denied until the lock ends, whatever its limit has left; asking meanwhile neither
/// prolongs the lock nor counts. A request of cost 0 only looks, so it is not denied. What counts are
/// all denials by this limit, those of a request that costs more than it can ever grant included. [`Limiter::reset`](crate::Limiter::reset) lifts it.
///
/// Denials are counted from the first one on, for as long as the limit takes to refill; then they are
/// forgotten. A lock set while another of another length was configured keeps its end, but lasts no
/// longer than the new length from now.
///
/// ```
/// use std::time::Duration;
///
/// use http::StatusCode;
/// use tollgate::{Limit, Lockout, Quota};
///
/// // Five tries a minute; who asks for a sixth is out for an hour.
/// let tries = Limit::new("tries", Quota::per_minute(5))
///     .lockout(Lockout::new(Duration::from_secs(3_600)).status(StatusCode::FORBIDDEN));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Lockout {
    length: Duration,
    after: u64,
    status: StatusCode,
}

impl Lockout {
    /// A lock of this length, set by the first denial. It is at least as long as the limit takes to
    /// refill, and at most 10 years.
    pub const fn new(length: Duration) -> Self {
        Self { length, after: 1, status: StatusCode::TOO_MANY_REQUESTS }
    }

    /// Set by the denial of this number, within the time that the limit takes to refill. Default: 1.
    pub const fn after(mut self, denials: u64) -> Self {
        self.after = denials;
        self
    }

    /// The status of answers while the key is locked, a client error (4xx). Default: 429.
    pub const fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) const fn status_code(&self) -> StatusCode {
        self.status
    }

    /// The arithmetic for a limit of this quota, for stores and their tests. What a limit cannot have, a
    /// [`Policy`](crate::Policy) refuses.
    #[must_use]
    pub fn lock(&self, quota: Quota) -> Lock {
        let length = micros(self.length);
        Lock::new(self.after, length, refill(quota).min(length))
    }

    pub(super) fn check(&self, limit: &str, quota: Quota) -> Result<(), PolicyError> {
        let Self { length, after, status } = self;
        let fault = if length.as_micros() < u128::from(refill(quota)) {
            let refill = Duration::from_micros(refill(quota));
            format!("of {length:?}: it must be at least the refill time, {refill:?}")
        } else if length.as_micros() > u128::from(MAX_LENGTH) {
            format!("of {length:?}: it must be at most 10 years (315360000 s)")
        } else if !(1..=MAX_DENIALS).contains(after) {
            format!("after {after} denials: it must be 1 to {MAX_DENIALS}")
        } else if !status.is_client_error() {
            format!("with status {status}: it must be a client error, 400 to 499")
        } else {
            return Ok(());
        };
        Err(PolicyError::new(format!("the limit `{limit}` has a lockout {fault}")))
    }
}

/// Microseconds in which a limit refills, rounded up.
fn refill(quota: Quota) -> u64 {
    u64::try_from(quota.timescale().div_ceil(PICOS_PER_MICRO)).unwrap_or(u64::MAX)
}
