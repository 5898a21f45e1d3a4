use std::{fmt, sync::Arc};

use smallvec::{Array, SmallVec};

use super::PolicyError;
use crate::{
    algorithm::TokenBucket,
    key::Key,
    quota::{Length, Quota},
    time::PICOS_PER_MICRO,
};

const MAX_NAME: usize = 64;

/// A name, a quota, and what one request costs.
///
/// A key has a bucket of its own for each limit: in the store it is named after the key, the policy,
/// the limit, and the time in which its quota refills.
///
/// # Changing a quota
///
/// A quota of another quantity but the same refill time (100 per minute, then 200 per minute) goes
/// on with what the keys owe, as time, and refills at the new rate at once. With another refill
/// time the keys begin anew, which grants each of them at most one new burst, once.
///
/// ```
/// use tollgate::{Limit, Quota};
///
/// let exports = Limit::new("exports", Quota::per_day(1_000)).cost(25);
/// ```
#[derive(Clone, Debug)]
pub struct Limit {
    name: Arc<str>,
    quota: Quota,
    cost: u64,
    scope: Option<Arc<str>>,
    /// What stands behind the key in the store's name: `policy/limit:algorithm+timescale`.
    suffix: Arc<str>,
}

impl Limit {
    /// A limit of this name, 1 to 64 ASCII letters, digits, `-`, `_` or `.`, at which one request
    /// costs one unit. The name is checked where the limit is used.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, quota: Quota) -> Self {
        let name = name.into();
        let suffix = suffix("-", &name, quota);
        Self { name, quota, cost: 1, scope: None, suffix }
    }

    /// One request takes `units`; 0 only looks at what is left. A cost above the burst never passes.
    #[must_use]
    pub const fn cost(mut self, units: u64) -> Self {
        self.cost = units;
        self
    }

    /// Shares buckets with limits of the same name, scope and refill time in other policies; without
    /// a scope each policy has its own.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Arc<str>>) -> Self {
        let scope = scope.into();
        // No policy's name begins like this.
        self.suffix = suffix(&format!("~{scope}"), &self.name, self.quota);
        self.scope = Some(scope);
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The quota.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// Units that one request takes.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.cost
    }

    pub(crate) const fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) const fn bucket(&self) -> TokenBucket {
        TokenBucket::new(self.quota)
    }

    /// Writes the name of this limit's state for `key`. The braces make all limits of one key share
    /// a slot of a cluster.
    pub(crate) fn write_name(&self, key: &Key, name: &mut SmallVec<impl Array<Item = u8>>) {
        for part in [b"{", key.as_bytes(), b"}:", self.suffix.as_bytes()] {
            name.extend_from_slice(part);
        }
    }

    /// The limit as the policy of this name has it.
    pub(super) fn within(mut self, policy: &str) -> Self {
        if self.scope.is_none() {
            self.suffix = suffix(policy, &self.name, self.quota);
        }
        self
    }

    /// The limit with another quota, in the same scope.
    pub(super) fn with_quota(&self, policy: &str, quota: Quota) -> Self {
        let limit = Self { quota, ..self.clone() };
        match self.scope.clone() {
            Some(scope) => limit.scope(scope),
            None => limit.within(policy),
        }
    }

    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        check_name("limit", &self.name)?;
        self.scope.as_deref().map_or(Ok(()), |scope| check_name("scope", scope))
    }
}

/// Names stand in keys, header fields and metric labels.
pub(super) fn check_name(of: &'static str, name: &str) -> Result<(), PolicyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    // A name of `-` alone stands for none.
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) && name != "-" {
        return Ok(());
    }
    Err(PolicyError::new(format!(
        "the {of} name {name:?}: it must be 1 to {MAX_NAME} ASCII letters, digits, `-`, `_` or `.`"
    )))
}

fn suffix(scope: &str, name: &str, quota: Quota) -> Arc<str> {
    format!("{scope}/{name}:tb{}", Timescale(quota.timescale())).into()
}

/// The refill time of a quota, to the microsecond, so that quotas of one rate and different rounding
/// share it.
struct Timescale(u128);

impl fmt::Display for Timescale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Length(self.0.next_multiple_of(PICOS_PER_MICRO)).fmt(f)
    }
}
