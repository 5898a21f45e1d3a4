//! A limit from its configuration.

use std::{collections::HashSet, sync::Arc};

use super::{
    error::Fault,
    extractors::{Extractors, Parts},
    forms::TierConfig,
    place::Path,
    shape::{AlgorithmConfig, LimitConfig, LockoutConfig, PolicyConfig},
    text::{self, Period, Rate},
};
use crate::{
    algorithm::{Algorithm, Calendar},
    key::{ClientIp, Global, KeyExtractor},
    policy::{Limit, Lockout, OnFailure, Policy, PolicyError},
    quota::Quota,
};

/// A limit, one field after another: the first with which it cannot be is the one that is wrong.
pub(super) struct Draft<'c> {
    config: &'c LimitConfig,
    path: Path,
    pub(super) parts: Parts,
    base: Limit,
    steps: Vec<(Path, Step)>,
}

type Step = Box<dyn Fn(Limit) -> Limit>;

impl<'c> Draft<'c> {
    pub(super) fn new(
        config: &'c LimitConfig,
        path: Path,
        (extractors, client): (&Extractors, &ClientIp),
    ) -> Result<Self, Fault> {
        let parts = Parts::parse(&config.key, &path.field("key"), (extractors, client))?;
        let at = path.field("quota");
        let rate = text::rate(&config.quota).map_err(|what| Fault::new(at.clone(), what))?;
        let quotas = Quotas::of(config.algorithm, rate, &at)?;
        let quota = quotas.quota(rate, config.burst, &at, &path.field("burst"))?;
        let base = Limit::new(&*config.name, quota);
        let mut draft = Self { config, path, parts, base, steps: Vec::new() };
        draft.own(quotas.algorithm)?;
        draft.others(&quotas, client)?;
        Ok(draft)
    }

    pub(super) fn extractor(&self) -> Arc<dyn KeyExtractor> {
        self.parts.extractor()
    }

    pub(super) fn limit(&self) -> Limit {
        self.up_to(self.steps.len())
    }

    /// Says which field is wrong, if one is, in this policy.
    pub(super) fn check(&self, of: &PolicyConfig, on_failure: OnFailure) -> Result<(), Fault> {
        // A share of a limit may be wrong where the limit is not.
        for (on_failure, first) in [(OnFailure::Allow, "name"), (on_failure, "quota")] {
            let build = |steps| {
                let limit = self.up_to(steps);
                let policy = Policy::new(&*of.name).limit(Global, limit).on_failure(on_failure);
                if of.one_slot { policy.one_slot().build() } else { policy.build() }
            };
            if build(self.steps.len()).is_ok() {
                continue;
            }
            let counts: Vec<usize> = (0..=self.steps.len()).collect();
            let wrong = counts.partition_point(|steps| build(*steps).is_ok());
            let last = wrong.checked_sub(1).and_then(|last| self.steps.get(last));
            let path = last.map_or_else(|| self.path.field(first), |(path, _)| path.clone());
            let Err(error) = build(wrong) else { continue };
            return Err(Fault::new(path, plain(&error, &of.name, &self.config.name)));
        }
        Ok(())
    }

    fn up_to(&self, steps: usize) -> Limit {
        self.steps.iter().take(steps).fold(self.base.clone(), |limit, (_, step)| step(limit))
    }

    fn step(&mut self, path: Path, step: impl Fn(Limit) -> Limit + 'static) {
        self.steps.push((path, Box::new(step)));
    }

    fn own(&mut self, algorithm: Algorithm) -> Result<(), Fault> {
        let (config, path) = (self.config, self.path.clone());
        self.step(path.field("algorithm"), move |limit| limit.algorithm(algorithm));
        if let Some(scope) = config.scope.clone() {
            self.step(path.field("scope"), move |limit| limit.scope(&*scope));
        }
        if let Some(cost) = config.cost {
            self.step(path.field("cost"), move |limit| limit.cost(cost));
        }
        if config.shadow {
            self.step(path.field("shadow"), Limit::shadow);
        }
        if let Some(lockout) = &config.lockout {
            let at = path.field("lockout");
            if config.shadow {
                let what = "a shadow has none: what denies nothing locks nothing";
                return Err(Fault::new(at, what));
            }
            let first = lock(lockout, &at)?;
            self.step(at.field("for"), move |limit| limit.lockout(first));
            if let Some(denials) = lockout.after {
                self.step(at.field("after"), move |limit| limit.lockout(first.after(denials)));
            }
        }
        if config.lease > 0 {
            let lease = config.lease;
            self.step(path.field("lease"), move |limit| limit.lease(lease));
        }
        Ok(())
    }

    fn others(&mut self, quotas: &Quotas, client: &ClientIp) -> Result<(), Fault> {
        for (tier, other) in &self.config.tiers {
            let at = self.path.field("tiers").field(tier);
            let (text, burst, quota_at) = match other {
                TierConfig::Quota(text) => (text, None, at.clone()),
                TierConfig::WithBurst(other) => {
                    (&other.quota, Some(other.burst), at.field("quota"))
                }
            };
            let quota = quotas.other(text, burst, &quota_at, &at.field("burst"))?;
            let tier: Arc<str> = tier.as_str().into();
            self.step(at, move |limit| limit.tier(Arc::clone(&tier), quota));
        }
        let mut keys = HashSet::new();
        for (at, other) in self.config.overrides.iter().enumerate() {
            let path = self.path.field("overrides").item(at);
            let of = |field: &str| path.field(field);
            let key = self.parts.key(&other.key, &of("key"), client)?;
            if keys.contains(&key) {
                return Err(Fault::new(of("key"), "another override is for this key"));
            }
            keys.insert(key.clone());
            let quota = quotas.other(&other.quota, other.burst, &of("quota"), &of("burst"))?;
            let until = other.until.as_deref().map(text::moment).transpose();
            match until.map_err(|what| Fault::new(of("until"), what))? {
                Some(until) => self
                    .step(path, move |limit| limit.override_key_until(key.clone(), quota, until)),
                None => self.step(path, move |limit| limit.override_key(key.clone(), quota)),
            }
        }
        Ok(())
    }
}

/// What the quotas of one limit have in common.
struct Quotas {
    algorithm: Algorithm,
    calendar: Option<Calendar>,
}

impl Quotas {
    fn of(config: AlgorithmConfig, rate: Rate, at: &Path) -> Result<Self, Fault> {
        let algorithm = match (config, rate.period) {
            (AlgorithmConfig::TokenBucket, _) => Algorithm::TokenBucket,
            (AlgorithmConfig::SlidingLog, _) => Algorithm::SlidingLog,
            (AlgorithmConfig::SlidingCounter, _) => Algorithm::SlidingCounter,
            (AlgorithmConfig::FixedWindow, _) => Algorithm::FixedWindow,
            (AlgorithmConfig::Calendar, Period::Calendar(unit)) => Algorithm::Calendar(unit),
            (AlgorithmConfig::Calendar, Period::Length(_)) => {
                return Err(Fault::new(
                    at.clone(),
                    "with the algorithm `calendar`, the period must be `day`, `week` or `month`",
                ));
            }
        };
        let calendar = if let Algorithm::Calendar(unit) = algorithm { Some(unit) } else { None };
        Ok(Self { algorithm, calendar })
    }

    /// None for `unlimited`.
    fn other(
        &self,
        text: &str,
        burst: Option<u64>,
        at: &Path,
        burst_at: &Path,
    ) -> Result<Option<Quota>, Fault> {
        let rate = text::rate_or_none(text).map_err(|what| Fault::new(at.clone(), what))?;
        match (rate, burst) {
            (Some(rate), burst) => self.quota(rate, burst, at, burst_at).map(Some),
            (None, Some(_)) => Err(Fault::new(burst_at.clone(), "what is unlimited has no burst")),
            (None, None) => Ok(None),
        }
    }

    fn quota(
        &self,
        rate: Rate,
        burst: Option<u64>,
        at: &Path,
        burst_at: &Path,
    ) -> Result<Quota, Fault> {
        let period = match (rate.period, self.calendar) {
            (Period::Length(length), None) => length,
            (Period::Calendar(unit), Some(own)) if unit == own => unit.nominal(),
            (_, Some(own)) => {
                let what = format!("the period must be the limit's own, `{}`", own.as_str());
                return Err(Fault::new(at.clone(), what));
            }
            (Period::Calendar(unit), None) => {
                let (unit, days) = (unit.as_str(), unit.nominal().as_secs() / 86_400);
                let what = format!(
                    "a {unit} is one of the calendar, for which there must be `algorithm = \
                     \"calendar\"`; a length of time is `{days}d`"
                );
                return Err(Fault::new(at.clone(), what));
            }
        };
        let quota = Quota::new(rate.quantity, period);
        let quota = quota.map_err(|error| Fault::new(at.clone(), error.to_string()))?;
        let Some(burst) = burst else { return Ok(quota) };
        quota.try_burst(burst).map_err(|error| Fault::new(burst_at.clone(), error.to_string()))
    }
}

/// A lockout by the first denial.
fn lock(config: &LockoutConfig, at: &Path) -> Result<Lockout, Fault> {
    let length = text::length(&config.length).map_err(|what| Fault::new(at.field("for"), what))?;
    let lockout = Lockout::new(length);
    let Some(status) = config.status else { return Ok(lockout) };
    let status = text::client_error(status)
        .ok_or_else(|| Fault::new(at.field("status"), "it must be a client error, 400 to 499"))?;
    Ok(lockout.status(status))
}

/// What an error says, without the names that stand before it anyway.
pub(super) fn plain(error: &PolicyError, policy: &str, limit: &str) -> String {
    let whole = error.to_string();
    for name in ["policy", "limit", "scope"] {
        let named = whole.strip_prefix(&format!("the {name} name "));
        if let Some((_, what)) = named.and_then(|named| named.split_once(": it must ")) {
            return format!("it must {what}");
        }
    }
    let known = [
        format!("the policy `{policy}`, limit `{limit}`, has "),
        format!("the policy `{policy}`, limit `{limit}`, "),
        format!("the policy `{policy}` has "),
        format!("the limit `{limit}` has "),
    ];
    let mut rest = &*whole;
    loop {
        let other = ["for the tier `", "for the key "].iter().any(|start| rest.starts_with(start));
        let shorter = match known.iter().find_map(|start| rest.strip_prefix(&**start)) {
            None if other => rest.split_once(": ").map(|(_, rest)| rest),
            found => found,
        };
        let Some(shorter) = shorter else { return rest.to_owned() };
        rest = shorter;
    }
}
