use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use super::PolicySet;

/// Policies that can be changed while they are in use: all at once, by a whole [`PolicySet`]. Clones
/// share the policies.
///
/// Requests that come after [`replace`](Self::replace) has returned are decided by the new policies, and
/// each by those of one set. What was counted is kept under the names of policy and limit: a limit that
/// did not change goes on where it was, and a [changed quota](crate::Limit#changing-a-quota) applies at
/// once.
///
/// ```
/// use tollgate::{
///     Limit, Limiter, MemoryStore, PeerIp, Policy, PolicyHandle, Quota, RateLimitLayer,
/// };
///
/// let api = |quota| Policy::new("api").limit(PeerIp, Limit::new("requests", quota)).build();
///
/// let policies = PolicyHandle::new(api(Quota::per_minute(60))?);
/// let layer = RateLimitLayer::with_policies(&policies, &Limiter::new(MemoryStore::new()));
/// // Later, in a task that watches a file:
/// policies.replace(api(Quota::per_minute(90))?);
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
#[derive(Clone)]
pub struct PolicyHandle(Arc<ArcSwap<PolicySet>>);

impl PolicyHandle {
    /// A handle on these policies, or this one.
    #[must_use]
    pub fn new(policies: impl Into<PolicySet>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(policies.into())))
    }

    /// The policies that are in use.
    #[must_use]
    pub fn load(&self) -> PolicySet {
        PolicySet::clone(&self.0.load())
    }

    /// Uses these policies from now on, and returns those that were in use.
    pub fn replace(&self, policies: impl Into<PolicySet>) -> PolicySet {
        PolicySet::clone(&self.0.swap(Arc::new(policies.into())))
    }

    /// Calls `with` with the policies that are in use.
    pub(crate) fn with<T>(&self, with: impl FnOnce(&PolicySet) -> T) -> T {
        with(&self.0.load())
    }
}

impl From<&Self> for PolicyHandle {
    fn from(handle: &Self) -> Self {
        handle.clone()
    }
}

impl<T: Into<PolicySet>> From<T> for PolicyHandle {
    fn from(policies: T) -> Self {
        Self::new(policies)
    }
}

impl fmt::Debug for PolicyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyHandle").field(&*self.0.load()).finish()
    }
}
