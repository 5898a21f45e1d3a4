//! Limits whose quota depends on who calls.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use super::{Limit, OnFailure, PolicyError};
use crate::{
    key::{Key, RequestHead, Tier},
    quota::Quota,
    time::Timestamp,
};

/// Quotas that requests have asked for, of which no more are remembered: more are made each time.
const MAX_REMEMBERED: usize = 256;

type ByRequest = Arc<dyn for<'a> Fn(RequestHead<'a>) -> Option<Quota> + Send + Sync>;

/// What a limit was told about other quotas. None stands for no limit.
#[derive(Clone, Default)]
pub(super) struct Choices {
    tiers: Vec<(Arc<str>, Option<Quota>)>,
    keys: Vec<(Key, Option<Quota>, Option<Timestamp>)>,
    by_request: Option<ByRequest>,
}

impl Limit {
    /// Another quota for requests of a [`Tier`](crate::Tier), which an outer layer has put into their
    /// extensions; with `None`, the limit does not apply to them.
    ///
    /// As with a [changed quota](Self#changing-a-quota), a key that comes to another tier goes on with
    /// what it owes, or begins anew: quotas of different refill times are buckets of their own, both of which
    /// a caller has who can change tier at will.
    ///
    /// ```
    /// use tollgate::{Limit, Quota};
    ///
    /// let requests = Limit::new("requests", Quota::per_minute(60))
    ///     .tier("pro", Quota::per_minute(6_000))
    ///     .tier("internal", None);
    /// ```
    #[must_use]
    pub fn tier(self, tier: impl Into<Arc<str>>, quota: impl Into<Option<Quota>>) -> Self {
        let (tier, quota) = (tier.into(), quota.into());
        self.choose(|choices| choices.tier(tier, quota))
    }

    /// Another quota for one key, whatever its tier; with `None`, the limit does not apply to it.
    #[must_use]
    pub fn override_key(self, key: impl Into<Key>, quota: impl Into<Option<Quota>>) -> Self {
        let (key, quota) = (key.into(), quota.into());
        self.choose(|choices| choices.key(key, quota, None))
    }

    /// The same, until a moment by the clock of this process.
    ///
    /// ```
    /// use tollgate::{Limit, PeerIp, Quota, Timestamp};
    ///
    /// let partner = PeerIp::key("192.0.2.7".parse()?);
    /// let until = Timestamp::from_micros(1_798_761_600_000_000); // the end of 2026
    /// let requests = Limit::new("requests", Quota::per_minute(60))
    ///     .override_key_until(partner, Quota::per_minute(600), until);
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[must_use]
    pub fn override_key_until(
        self,
        key: impl Into<Key>,
        quota: impl Into<Option<Quota>>,
        until: Timestamp,
    ) -> Self {
        let (key, quota) = (key.into(), quota.into());
        self.choose(|choices| choices.key(key, quota, Some(until)))
    }

    /// Another quota for requests for which `quota` says one. It goes before that of the tier, and after
    /// that of the key. One that the limit could not have itself, since its algorithm does not keep it or
    /// the cost is above its burst, counts for nothing.
    ///
    /// ```
    /// use tollgate::{Limit, Quota, RequestHead};
    ///
    /// #[derive(Clone)]
    /// struct Plan { per_minute: u64 }
    ///
    /// let requests = Limit::new("requests", Quota::per_minute(60)).quota_by(|head: RequestHead<'_>| {
    ///     let plan = head.extension::<Plan>()?;
    ///     Quota::new(plan.per_minute, std::time::Duration::from_secs(60)).ok()
    /// });
    /// ```
    #[must_use]
    pub fn quota_by(
        self,
        quota: impl for<'a> Fn(RequestHead<'a>) -> Option<Quota> + Send + Sync + 'static,
    ) -> Self {
        self.choose(|choices| choices.by_request(Arc::new(quota)))
    }

    fn choose(mut self, change: impl FnOnce(&mut Choices)) -> Self {
        change(Arc::make_mut(self.choices.get_or_insert_default()));
        self
    }
}

impl Choices {
    fn tier(&mut self, tier: Arc<str>, quota: Option<Quota>) {
        self.tiers.push((tier, quota));
    }

    fn key(&mut self, key: Key, quota: Option<Quota>, until: Option<Timestamp>) {
        self.keys.push((key, quota, until));
    }

    fn by_request(&mut self, quota: ByRequest) {
        self.by_request = Some(quota);
    }
}

impl fmt::Debug for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choices")
            .field("tiers", &self.tiers)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// A limit as a policy has it, and what this instance enforces on its own.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) limit: Limit,
    /// While the store does not answer.
    pub(crate) local: Option<Limit>,
}

/// Which limit applies to a request.
pub(crate) enum Applies {
    /// The policy's own.
    Own,
    /// One of another quota.
    Instead(Arc<Variant>),
    /// None.
    Not,
}

/// The limits of other quotas, ready to be used.
pub(crate) struct Variants {
    tiers: Vec<(Arc<str>, Option<Arc<Variant>>)>,
    keys: HashMap<Key, (Option<Arc<Variant>>, Option<Timestamp>)>,
    by_request: Option<(ByRequest, Maker)>,
}

/// Makes variants, as a policy would.
#[derive(Clone)]
pub(super) struct Maker {
    /// As it was given, without a policy.
    limit: Limit,
    policy: Arc<str>,
    one_slot: bool,
    on_failure: OnFailure,
    remembered: Arc<RwLock<HashMap<Quota, Option<Arc<Variant>>>>>,
}

impl Variants {
    /// None, if the limit has one quota for all.
    pub(super) fn new(maker: &Maker) -> Result<Option<Self>, PolicyError> {
        let Some(choices) = maker.limit.choices.as_deref() else { return Ok(None) };
        let make = |quota: Option<Quota>| quota.map(|quota| maker.make(quota)).transpose();
        let mut tiers: Vec<(Arc<str>, _)> = Vec::new();
        for (tier, quota) in &choices.tiers {
            if tiers.iter().any(|(other, _)| other == tier) {
                return Err(maker.fault(format_args!("two quotas for the tier `{tier}`")));
            }
            let variant = make(*quota);
            let variant = variant
                .map_err(|cause| maker.fault(format_args!("for the tier `{tier}`: {cause}")));
            tiers.push((Arc::clone(tier), variant?));
        }
        let mut keys = HashMap::new();
        for (key, quota, until) in &choices.keys {
            let variant = make(*quota);
            let variant = variant
                .map_err(|cause| maker.fault(format_args!("for the key {key:?}: {cause}")))?;
            if keys.insert(key.clone(), (variant, *until)).is_some() {
                return Err(maker.fault(format_args!("two quotas for the key {key:?}")));
            }
        }
        let by_request = choices.by_request.clone().map(|quota| (quota, maker.clone()));
        Ok(Some(Self { tiers, keys, by_request }))
    }

    /// Which one applies to this key of a request.
    pub(crate) fn applies(
        &self,
        head: RequestHead<'_>,
        key: &Key,
        now: impl FnOnce() -> Timestamp,
    ) -> Applies {
        if let Some((variant, until)) = self.of_key(key)
            && until.is_none_or(|until| now() < until)
        {
            return choice(variant);
        }
        if let Some((quota, maker)) = &self.by_request
            && let Some(variant) = quota(head).and_then(|quota| maker.remember(quota))
        {
            return Applies::Instead(variant);
        }
        head.extension::<Tier>().map_or(Applies::Own, |tier| self.of_tier(tier))
    }

    /// Which one applies to this key of somebody of this tier.
    pub(crate) fn applies_to(
        &self,
        tier: Option<&Tier>,
        key: &Key,
        now: impl FnOnce() -> Timestamp,
    ) -> Applies {
        match self.of_key(key) {
            Some((variant, until)) if until.is_none_or(|until| now() < until) => choice(variant),
            _ => tier.map_or(Applies::Own, |tier| self.of_tier(tier)),
        }
    }

    fn of_key(&self, key: &Key) -> Option<&(Option<Arc<Variant>>, Option<Timestamp>)> {
        if self.keys.is_empty() { None } else { self.keys.get(key) }
    }

    fn of_tier(&self, tier: &Tier) -> Applies {
        let found = self.tiers.iter().find(|(name, _)| **name == *tier.as_str());
        found.map_or(Applies::Own, |(_, variant)| choice(variant))
    }
}

fn choice(variant: &Option<Arc<Variant>>) -> Applies {
    variant.as_ref().map_or(Applies::Not, |variant| Applies::Instead(Arc::clone(variant)))
}

impl fmt::Debug for Variants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variants")
            .field("tiers", &self.tiers)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Maker {
    pub(super) fn new(
        limit: Limit,
        policy: &Arc<str>,
        one_slot: bool,
        on_failure: OnFailure,
    ) -> Self {
        let remembered = Arc::default();
        Self { limit, policy: Arc::clone(policy), one_slot, on_failure, remembered }
    }

    /// The limit as the policy has it.
    pub(super) fn own(&self) -> Result<Variant, PolicyError> {
        self.finish(self.limit.clone())
    }

    fn make(&self, quota: Quota) -> Result<Arc<Variant>, PolicyError> {
        self.finish(self.limit.clone().with_quota(quota)).map(Arc::new)
    }

    /// The same for a request, which cannot be told about an error.
    fn remember(&self, quota: Quota) -> Option<Arc<Variant>> {
        let remembered = self.remembered.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(variant) = remembered.get(&quota) {
            return variant.clone();
        }
        let full = remembered.len() >= MAX_REMEMBERED;
        drop(remembered);
        let variant = self.make(quota).ok();
        if !full {
            let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
            remembered.insert(quota, variant.clone());
        }
        variant
    }

    fn finish(&self, limit: Limit) -> Result<Variant, PolicyError> {
        limit.check()?;
        if let (true, Some(scope)) = (self.one_slot, &limit.scope) {
            return Err(self.fault(format_args!(
                "the scope `{scope}` beside one slot, in which nothing lies that other policies share"
            )));
        }
        let (cost, most) = (limit.units(), limit.quota().capacity());
        if cost > most {
            return Err(self.fault(format_args!(
                "a cost of {cost}, which no request can pay: at most {most} units can be taken at once"
            )));
        }
        let local = self.local(&limit)?;
        Ok(Variant { limit: limit.within(&self.policy, self.one_slot), local })
    }

    fn local(&self, limit: &Limit) -> Result<Option<Limit>, PolicyError> {
        let Some(share) = self.on_failure.share(&self.policy)? else { return Ok(None) };
        let (policy, name) = (&self.policy, limit.name());
        let local = limit.share(share).map_err(|cause| {
            PolicyError::new(format!(
                "the policy `{policy}`, limit `{name}`, with a local share of {share}: {cause}"
            ))
        })?;
        let (cost, most) = (local.units(), local.quota().capacity());
        if cost > most {
            return Err(self.fault(format_args!(
                "a cost of {cost}: with a local share of {share}, at most {most} units can be taken at \
                 once"
            )));
        }
        Ok(Some(local.within(policy, self.one_slot)))
    }

    fn fault(&self, what: fmt::Arguments<'_>) -> PolicyError {
        let (policy, name) = (&self.policy, self.limit.name());
        PolicyError::new(format!("the policy `{policy}`, limit `{name}`, has {what}"))
    }
}
