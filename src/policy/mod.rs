//! Limits that are checked together, and what to do when that is not possible.

mod by_kind;
mod callers;
mod handle;
mod limit;
mod lockout;
mod name;
mod on_failure;
mod origin;
mod quotas;
mod route;

use std::{fmt, sync::Arc};

use http::StatusCode;

pub use self::{
    by_kind::ByKind,
    callers::Callers,
    handle::PolicyHandle,
    limit::Limit,
    lockout::Lockout,
    on_failure::OnFailure,
    route::{PolicySet, PolicySetBuilder},
};
use self::{name::check_name, quotas::Maker};
pub(crate) use self::{
    quotas::{Applies, Variant, Variants},
    route::Match,
};
use crate::{
    key::{Key, KeyExtractor, RequestHead, Tier},
    time::Timestamp,
};

/// The most limits of one policy.
const MAX_LIMITS: usize = 8;

/// Limits with their keys, charged together in one round trip or not at all, and what to do when the
/// store fails or a request has no key. Clones are cheap.
///
/// ```
/// use tollgate::{KeyExtractor, Limit, OnFailure, PeerIp, Policy, Quota, key};
///
/// let api = Policy::new("api")
///     .limit(key::known_key().or(PeerIp), Limit::new("burst", Quota::per_second(20)))
///     .limit(key::known_key().or(PeerIp), Limit::new("daily", Quota::per_day(10_000)))
///     .on_failure(OnFailure::Local { share: 0.25 })
///     .build()?;
/// assert_eq!(api.name(), "api");
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: Arc<str>,
    limits: Box<[Entry]>,
    on_failure: OnFailure,
    on_missing_key: OnMissingKey,
    allowed: Vec<Callers>,
    denied: Vec<Callers>,
    origin: Option<Arc<str>>,
}

/// Whether a policy knows a caller.
pub(crate) enum Listed {
    Not,
    /// One who is not limited.
    Allowed,
    /// One who is not admitted.
    Denied,
}

/// A limit, with whom it counts.
pub(crate) struct Entry {
    pub(crate) key: Box<dyn KeyExtractor>,
    pub(crate) own: Variant,
    /// The same of other quotas, for those who have them.
    pub(crate) others: Option<Variants>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("own", &self.own).field("others", &self.others).finish()
    }
}

impl Policy {
    /// Begins a policy of this name, 1 to 64 ASCII letters, digits, `-`, `_` or `.`.
    #[expect(clippy::new_ret_no_self, reason = "a policy that exists is valid; this begins one")]
    pub fn new(name: impl Into<Arc<str>>) -> PolicyBuilder {
        PolicyBuilder {
            name: name.into(),
            limits: Vec::new(),
            one_slot: false,
            on_failure: OnFailure::Allow,
            on_missing_key: OnMissingKey::Reject,
            allowed: Vec::new(),
            denied: Vec::new(),
            origin: None,
        }
    }

    /// The policy of a layer that was given none: one limit, named after its quota.
    pub(crate) fn unnamed(key: impl KeyExtractor, limit: Limit) -> Self {
        // An `Arc` of its own: it tells the policy from others without a name.
        let name: Arc<str> = "-".into();
        let own = Variant { limit: limit.within(&name, false), local: None };
        Self(Arc::new(Inner {
            name,
            limits: Box::new([Entry { key: Box::new(key), own, others: None }]),
            on_failure: OnFailure::Allow,
            on_missing_key: OnMissingKey::Reject,
            allowed: Vec::new(),
            denied: Vec::new(),
            origin: None,
        }))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The limits, in order.
    pub fn limits(&self) -> impl ExactSizeIterator<Item = &Limit> {
        self.0.limits.iter().map(|entry| &entry.own.limit)
    }

    /// The limit of this name, as the policy has it: to look, or to reset a key.
    #[must_use]
    pub fn limit(&self, name: &str) -> Option<&Limit> {
        self.limits().find(|limit| limit.name() == name)
    }

    /// What [`Limiter::limit_for`](crate::Limiter::limit_for) says.
    pub(crate) fn limit_for(
        &self,
        name: &str,
        tier: Option<&Tier>,
        key: &Key,
        now: impl FnOnce() -> Timestamp,
    ) -> Option<Limit> {
        let entry = self.entries().iter().find(|entry| entry.own.limit.name() == name)?;
        match entry.others.as_ref().map(|others| others.applies_to(tier, key, now)) {
            None | Some(Applies::Own) => Some(entry.own.limit.clone()),
            Some(Applies::Instead(variant)) => Some(variant.limit.clone()),
            Some(Applies::Not) => None,
        }
    }

    /// What happens to requests while the store does not answer.
    #[must_use]
    pub fn on_failure(&self) -> OnFailure {
        self.0.on_failure
    }

    /// What happens to requests without a key.
    #[must_use]
    pub fn on_missing_key(&self) -> OnMissingKey {
        self.0.on_missing_key
    }

    pub(crate) fn listed(&self, head: RequestHead<'_>) -> Listed {
        let among = |lists: &[Callers]| lists.iter().any(|callers| callers.include(head));
        if among(&self.0.denied) {
            Listed::Denied
        } else if among(&self.0.allowed) {
            Listed::Allowed
        } else {
            Listed::Not
        }
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.0.name
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0.limits
    }
}

/// What happens to requests from which no key can be drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// They are rejected with the status of the extractor: 401 where a credential is missing, else
    /// 400. The default.
    #[default]
    Reject,
    /// They are rejected with this status, a client error (4xx).
    RejectWith(StatusCode),
    /// The limit whose key is missing does not apply to them.
    Skip,
    /// All of them share one bucket.
    Anonymous,
}

/// Builds a [`Policy`].
#[must_use]
pub struct PolicyBuilder {
    name: Arc<str>,
    limits: Vec<(Box<dyn KeyExtractor>, Limit)>,
    one_slot: bool,
    on_failure: OnFailure,
    on_missing_key: OnMissingKey,
    allowed: Vec<Callers>,
    denied: Vec<Callers>,
    origin: Option<Arc<str>>,
}

impl PolicyBuilder {
    /// Adds a limit, and whom it counts. A policy has 1 to 8 limits of different names.
    pub fn limit(mut self, key: impl KeyExtractor, limit: Limit) -> Self {
        self.limits.push((Box::new(key), limit));
        self
    }

    /// Keeps all states of this policy in one slot of a Redis Cluster, so that also limits which count by
    /// different identities are charged in one atomic call, and no units are ever withheld until they are
    /// given back. Default: no. Other policies stay spread, and a single server only sees other names.
    ///
    /// **One shard then carries all of the policy**, however many there are: this is for policies of few
    /// requests, such as one for logins by address and user. What was counted without it does not count
    /// with it, so instances that disagree count apart. A limit of it has no [`scope`](Limit::scope).
    ///
    /// ```
    /// use tollgate::{Limit, PeerIp, Policy, Quota, key};
    ///
    /// let login = Policy::new("login")
    ///     .limit(PeerIp, Limit::new("address", Quota::per_minute(20)))
    ///     .limit(key::path_param("user"), Limit::new("user", Quota::per_minute(5)))
    ///     .one_slot()
    ///     .build()?;
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    pub const fn one_slot(mut self) -> Self {
        self.one_slot = true;
        self
    }

    /// Callers who are not limited: their requests pass, and are charged to nobody. Who is also among
    /// those [denied](Self::deny) is denied.
    pub fn allow(mut self, callers: Callers) -> Self {
        self.allowed.push(callers);
        self
    }

    /// Callers who are not admitted: their requests are answered 403, and are charged to nobody.
    pub fn deny(mut self, callers: Callers) -> Self {
        self.denied.push(callers);
        self
    }

    /// What happens to requests while the store does not answer. Default: they pass.
    pub const fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// What happens to requests without a key. Default: they are rejected.
    pub const fn on_missing_key(mut self, on_missing_key: OnMissingKey) -> Self {
        self.on_missing_key = on_missing_key;
        self
    }

    /// The policy.
    ///
    /// # Errors
    ///
    /// If a name, the number of limits, a share or a status is out of its bounds, if two limits have one
    /// name, or if one has a scope beside one slot. The message names the value and the bound.
    pub fn build(self) -> Result<Policy, PolicyError> {
        let name = &self.name;
        check_name("policy", name)?;
        if self.limits.is_empty() || self.limits.len() > MAX_LIMITS {
            let count = self.limits.len();
            return Err(PolicyError::new(format!(
                "the policy `{name}` has {count} limits: it must have 1 to {MAX_LIMITS}"
            )));
        }
        if let OnMissingKey::RejectWith(status) = self.on_missing_key
            && !status.is_client_error()
        {
            return Err(PolicyError::new(format!(
                "the policy `{name}` rejects requests without a key with {status}: it must be a \
                 client error, 400 to 499"
            )));
        }
        let mut limits: Vec<Entry> = Vec::new();
        for (key, limit) in self.limits {
            if limits.iter().any(|other| other.own.limit.name() == limit.name()) {
                return Err(PolicyError::new(format!(
                    "the policy `{name}` has two limits named `{}`: they would share their buckets",
                    limit.name()
                )));
            }
            let maker = Maker::new(limit, name, self.one_slot, self.on_failure);
            limits.push(Entry { key, own: maker.own()?, others: Variants::new(&maker)? });
        }
        Ok(Policy(Arc::new(Inner {
            limits: limits.into(),
            name: self.name,
            on_failure: self.on_failure,
            on_missing_key: self.on_missing_key,
            allowed: self.allowed,
            denied: self.denied,
            origin: self.origin,
        })))
    }
}

impl fmt::Debug for PolicyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A policy that cannot be; the message names the value and the bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    message: String,
}

impl PolicyError {
    pub(crate) const fn new(message: String) -> Self {
        Self { message }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PolicyError {}
