use std::{
    fmt,
    ops::Range,
    sync::{Arc, LazyLock},
};

use http::StatusCode;
use smallvec::{Array, SmallVec};

use super::{
    Lockout, PolicyError,
    name::{self, Timescale, check_name},
    quotas::Choices,
};
use crate::{
    algorithm::{Algorithm, Calendar, Lock, Meter},
    decision::Rule,
    key::RequestHead,
    quota::{Quota, QuotaError},
};

/// The place of a policy's name in the names of states, where there is no policy.
static NO_POLICY: LazyLock<Arc<str>> = LazyLock::new(|| "-".into());

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
    rule: Arc<Rule>,
    algorithm: Algorithm,
    meter: Meter,
    cost: Cost,
    shadow: bool,
    lockout: Option<Lockout>,
    lease: u64,
    pub(super) scope: Option<Arc<str>>,
    /// Whether all states of its policy lie in one slot of a cluster.
    one_slot: bool,
    /// Other quotas, for some requests.
    pub(super) choices: Option<Arc<Choices>>,
    /// What stands behind the key in the store's name: `}:policy/limit:algorithm+timescale`; in one slot,
    /// without the brace.
    suffix: Arc<str>,
    /// The same of its lock: `}:policy/limit:lk`.
    lock_suffix: Arc<str>,
}

impl Limit {
    /// A limit of this name, 1 to 64 ASCII letters, digits, `-`, `_` or `.`, at which one request
    /// costs one unit. The name is checked where the limit is used.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, quota: Quota) -> Self {
        let algorithm = Algorithm::default();
        let limit = Self {
            rule: Arc::new(Rule::new(&NO_POLICY, &name.into(), quota)),
            algorithm,
            meter: algorithm.meter(quota),
            cost: Cost::Fixed(1),
            shadow: false,
            lockout: None,
            lease: 0,
            scope: None,
            one_slot: false,
            choices: None,
            suffix: "".into(),
            lock_suffix: "".into(),
        };
        limit.within(&NO_POLICY, false)
    }

    /// A limit of `units` in each unit of the calendar, in UTC.
    ///
    /// ```
    /// use tollgate::{Calendar, Limit};
    ///
    /// let plan = Limit::calendar("plan", 10_000, Calendar::Month);
    /// ```
    ///
    /// # Panics
    ///
    /// If `units` is 0, or outside the [bounds](Quota#bounds) of a quota.
    #[must_use]
    pub fn calendar(name: impl Into<Arc<str>>, units: u64, calendar: Calendar) -> Self {
        let quota = Quota::literal(units, calendar.nominal().as_secs());
        Self::new(name, quota).algorithm(Algorithm::Calendar(calendar))
    }

    /// How the limit counts. Default: [`Algorithm::TokenBucket`]. What an algorithm cannot keep is an
    /// error where the limit is used.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        let meter = algorithm.meter(self.rule.quota);
        Self { algorithm, meter, ..self }.within(&NO_POLICY, false)
    }

    /// One request takes `units`, no more than the burst; 0 only looks at what is left.
    #[must_use]
    pub fn cost(self, units: u64) -> Self {
        Self { cost: Cost::Fixed(units), ..self }
    }

    /// A request takes as many units as `cost` says of it. Where there is no request, as in
    /// [`Limiter::check`](crate::Limiter::check), one.
    ///
    /// ```
    /// use http::Method;
    /// use tollgate::{Limit, Quota};
    ///
    /// let points = Limit::new("points", Quota::per_minute(900))
    ///     .cost_by(|head| if head.method() == Method::GET { 1 } else { 5 });
    /// ```
    #[must_use]
    pub fn cost_by(
        self,
        cost: impl for<'a> Fn(RequestHead<'a>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self { cost: Cost::Request(Arc::new(cost)), ..self }
    }

    /// Only watches: it denies nothing and is told to no client, but decisions and metrics show what it
    /// would have denied: its [`Verdict`](crate::Verdict) is one whose standing does not fit. It is charged when the enforced limits admit a request, and it would too.
    #[must_use]
    pub fn shadow(self) -> Self {
        Self { shadow: true, ..self }
    }

    /// Locks a key for a time, once this limit has denied it. Not for a [`shadow`](Self::shadow).
    #[must_use]
    pub fn lockout(mut self, lockout: Lockout) -> Self {
        self.lockout = Some(lockout);
        self.within(&NO_POLICY, false)
    }

    /// Charges up to `units` ahead in one trip to the store, and admits requests to them without asking
    /// again: for hot keys. Token buckets, fixed windows and the calendar only, without a lockout or
    /// [`shadow`](Self::shadow); at most the burst.
    ///
    /// The limit is never exceeded: what is held was charged before, and lapses when the store has it
    /// back. It is held back from other instances instead: of a key, each holds at most `units`
    /// unused. They ask for less where a key is not that busy, and give back after half a second what
    /// nobody uses, and all with [`Limiter::shutdown`](crate::Limiter::shutdown). An instance that is
    /// killed loses what it holds until it has come back. After a reset, what other instances hold may
    /// still be used, on top.
    ///
    /// ```
    /// use tollgate::{Limit, Quota};
    ///
    /// let busy = Limit::new("busy", Quota::per_second(50_000)).lease(500);
    /// ```
    #[must_use]
    pub fn lease(self, units: u64) -> Self {
        Self { lease: units, ..self }
    }

    /// Shares buckets with limits of the same name, scope and refill time in other policies; without
    /// a scope each policy has its own. Not for policies in [one slot](crate::PolicyBuilder::one_slot).
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Arc<str>>) -> Self {
        self.scope = Some(scope.into());
        self.within(&NO_POLICY, false)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.rule.name
    }

    /// How it counts.
    #[must_use]
    pub const fn counts_by(&self) -> Algorithm {
        self.algorithm
    }

    /// The quota.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.rule.quota
    }

    /// Whether it only watches.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.shadow
    }

    /// Units that one request takes, where that does not depend on the request; otherwise 1.
    #[must_use]
    pub const fn units(&self) -> u64 {
        match self.cost {
            Cost::Fixed(units) => units,
            Cost::Request(_) => 1,
        }
    }

    pub(crate) fn units_of(&self, head: RequestHead<'_>) -> u64 {
        match &self.cost {
            Cost::Fixed(units) => *units,
            Cost::Request(cost) => cost(head),
        }
    }

    pub(crate) const fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    /// Whether it is one of a policy.
    pub(crate) fn is_in_policy(&self) -> bool {
        !Arc::ptr_eq(&self.rule.policy, &NO_POLICY)
    }

    pub(crate) const fn meter(&self) -> Meter {
        self.meter
    }

    /// Units that may be charged ahead.
    pub(crate) const fn leased(&self) -> u64 {
        self.lease
    }

    /// The lock that guards it, and the status of answers while a key is locked.
    pub(crate) fn lock(&self) -> Option<(Lock, StatusCode)> {
        let lockout = self.lockout.as_ref()?;
        Some((lockout.lock(self.rule.quota), lockout.status_code()))
    }

    /// Appends the name of this limit's state for `key`, and says where in it the key stands.
    pub(crate) fn write_name(
        &self,
        key: &[u8],
        name: &mut SmallVec<impl Array<Item = u8>>,
    ) -> Range<usize> {
        name::write(self.slot(), key, &self.suffix, name)
    }

    /// The same of its lock.
    pub(crate) fn write_lock_name(&self, key: &[u8], name: &mut SmallVec<impl Array<Item = u8>>) {
        name::write(self.slot(), key, &self.lock_suffix, name);
    }

    /// The policy whose states all lie in the slot of its name.
    fn slot(&self) -> Option<&str> {
        self.one_slot.then_some(&*self.rule.policy)
    }

    /// The limit as the policy of this name has it, which keeps all in one slot or does not.
    pub(super) fn within(mut self, policy: &Arc<str>, one_slot: bool) -> Self {
        let (name, tag) = (&self.rule.name, self.algorithm.tag());
        let timescale = Timescale(self.rule.quota.timescale());
        let place = match &self.scope {
            // No policy's name begins like this.
            Some(scope) => format!("~{scope}/{name}"),
            None => format!("{policy}/{name}"),
        };
        let brace = if one_slot { "" } else { "}" };
        self.suffix = format!("{brace}:{place}:{tag}{timescale}").into();
        // Without a timescale: a lock outlasts a change of the quota.
        self.lock_suffix = format!("{brace}:{place}:lk").into();
        self.one_slot = one_slot;
        if !Arc::ptr_eq(policy, &self.rule.policy) {
            self.rule = Arc::new(Rule::new(policy, &self.rule.name, self.rule.quota));
        }
        self
    }

    /// This instance's share of the limit.
    pub(super) fn share(&self, share: f64) -> Result<Self, QuotaError> {
        let quota = self.algorithm.share(self.rule.quota, share)?;
        Ok(self.clone().with_quota(quota))
    }

    /// The same limit of another quota, which needs its name anew.
    pub(super) fn with_quota(self, quota: Quota) -> Self {
        let meter = self.algorithm.meter(quota);
        let rule = Arc::new(Rule::new(&self.rule.policy, &self.rule.name, quota));
        Self { rule, meter, lease: self.lease.min(quota.capacity()), choices: None, ..self }
    }

    fn check_lease(&self) -> Result<(), PolicyError> {
        let (name, lease, burst) = (&self.rule.name, self.lease, self.rule.quota.capacity());
        let fault = if lease > burst {
            format!("of {lease} units: it must be at most the burst, {burst}")
        } else if lease > 0 && !self.meter.leases() {
            "beside an algorithm that cannot: token buckets, fixed windows and the calendar can"
                .to_owned()
        } else if lease > 0 && self.lockout.is_some() {
            "beside a lockout, which has to see every request".to_owned()
        } else if lease > 0 && self.shadow {
            "and is a shadow, which need not be fast".to_owned()
        } else {
            return Ok(());
        };
        Err(PolicyError::new(format!("the limit `{name}` has a lease {fault}")))
    }

    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        check_name("limit", &self.rule.name)?;
        self.scope.as_deref().map_or(Ok(()), |scope| check_name("scope", scope))?;
        self.check_lease()?;
        if let Some(lockout) = &self.lockout {
            if self.shadow {
                let name = &self.rule.name;
                return Err(PolicyError::new(format!(
                    "the limit `{name}` is a shadow with a lockout: what denies nothing locks nothing"
                )));
            }
            lockout.check(&self.rule.name, self.rule.quota)?;
        }
        self.algorithm.check(self.rule.quota, self.units()).map_err(|fault| {
            PolicyError::new(format!("the limit `{}` has {fault}", self.rule.name))
        })
    }
}

/// What one request takes.
#[derive(Clone)]
enum Cost {
    Fixed(u64),
    Request(Arc<dyn for<'a> Fn(RequestHead<'a>) -> u64 + Send + Sync>),
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(units) => units.fmt(f),
            Self::Request(_) => f.write_str("by request"),
        }
    }
}
