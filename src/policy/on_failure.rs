use super::{ByKind, PolicyError};
use crate::failure::StoreErrorKind;

/// What happens to requests while the store does not answer.
///
/// Each start and end of such a time is logged once. A store that is misconfigured (a wrong
/// password, a missing right, a key of another type) is logged as an error, whatever is set here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum OnFailure {
    /// They pass, without headers. The default: a limiter should not take its service down.
    #[default]
    Allow,
    /// They are answered 503, with a short `Retry-After`.
    Deny,
    /// This instance alone limits them, in its own memory, to `share` of each quota: a share of the
    /// rate, and of the burst, but at least one unit at once. With `N` instances, a share of `1/N`
    /// keeps the rate; together they admit at most `N × max(share × burst, 1)` at once.
    ///
    /// What the store has counted is not known here, nor the other way round. So a key that has used up
    /// its burst when the store fails may take a share of it again in each instance: over the failure
    /// and what lies around it, at most `1 + N × share` bursts, and the rate of both. What is counted
    /// here is kept when the store comes back, so that one that comes and goes admits no more.
    Local {
        /// More than 0, at most 1.
        share: f64,
    },
    /// What [`by`](Self::by) has chosen for each kind of failure.
    ByKind(ByKind),
}

impl OnFailure {
    /// What `choose` says for each kind of failure. It is called here, once for each kind, and not when
    /// a request comes. All shares of [`Local`](Self::Local) must be the same, or the policy is an error.
    ///
    /// Of a store that stays away, most requests see [`BreakerOpen`](StoreErrorKind::BreakerOpen): it is
    /// not asked for each.
    ///
    /// ```
    /// use tollgate::{Limit, OnFailure, PeerIp, Policy, Quota, StoreErrorKind};
    ///
    /// let api = Policy::new("api")
    ///     .limit(PeerIp, Limit::new("burst", Quota::per_second(20)))
    ///     .on_failure(OnFailure::by(|kind| match kind {
    ///         StoreErrorKind::Misconfigured => OnFailure::Deny,
    ///         _ => OnFailure::Local { share: 0.25 },
    ///     }))
    ///     .build()?;
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    pub fn by(choose: impl Fn(StoreErrorKind) -> Self) -> Self {
        Self::ByKind(ByKind::new(choose))
    }

    /// What happens after a failure of this kind: never [`ByKind`](Self::ByKind).
    #[must_use]
    pub fn of(self, kind: StoreErrorKind) -> Self {
        match self {
            Self::ByKind(table) => table.of(kind),
            plain => plain,
        }
    }

    /// The share of each quota that this instance enforces on its own, if it ever does.
    pub(super) fn share(self, policy: &str) -> Result<Option<f64>, PolicyError> {
        let mut found = None;
        for kind in StoreErrorKind::ALL {
            let Self::Local { share } = self.of(*kind) else { continue };
            if !(share > 0.0 && share <= 1.0) {
                return Err(PolicyError::new(format!(
                    "the policy `{policy}` has a local share of {share}: it must be more than 0 and \
                     at most 1"
                )));
            }
            if let Some(other) = found.replace(share)
                && other.total_cmp(&share).is_ne()
            {
                return Err(PolicyError::new(format!(
                    "the policy `{policy}` has local shares of {other} and {share}: they must be the \
                     same, since what is counted is kept from one failure to the next"
                )));
            }
        }
        Ok(found)
    }
}
