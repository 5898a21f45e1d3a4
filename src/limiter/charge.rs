use std::{
    mem,
    sync::{Arc, LazyLock},
};

use super::{
    Desk, Limiter,
    ask::{Ask, Place},
    usage::Usage,
};
use crate::{
    decision::{Decision, Draft, Outcome, Source, Verdict},
    policy::{Limit, Policy, Variant},
    store::{Answer, Reply, Store},
};

/// What one request is to be charged to.
pub(super) struct Charge(Draft<Usage>);

/// The limits that a charge is for. It does not hold them, so that deciding clones none of them.
#[derive(Clone, Copy)]
pub(super) enum Limits<'a> {
    Policy(&'a Policy),
    /// This instance's share of a policy.
    Local(&'a Policy),
    Own(&'a [&'a Limit]),
}

pub(super) static NO_POLICY: LazyLock<Arc<str>> = LazyLock::new(|| "-".into());

impl Charge {
    /// For a request about which a limiter outside this one has decided before.
    pub(super) fn after(outer: Option<&Decision>, limiter: &Limiter) -> Self {
        let identity = identity(&*limiter.0.store);
        let usage = Usage { limiter: limiter.clone(), local: false, identity, ask: Ask::default() };
        Self(Draft::new(outer.cloned(), usage))
    }

    /// Adds `cost` units of a limit for a key. A state that the request was charged to before is only
    /// looked at.
    pub(super) fn push(&mut self, limit: &Limit, place: Place, key: &[u8], cost: u64) {
        let Some(Usage { ask, .. }) = self.0.origin_mut() else { return };
        ask.push(limit, place, key, cost);
        if self.0.outer().is_some() && self.was_asked() {
            self.0.origin_mut().into_iter().for_each(|usage| usage.ask.only_look());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ask().is_empty()
    }

    /// Asks the store.
    pub(super) fn acquire(&mut self, desk: Desk<'_>) -> Reply {
        if let (Some(cache), Some(usage)) = (desk.cache, self.0.origin_mut()) {
            usage.ask.begin(cache);
        }
        self.ask().acquire(desk)
    }

    /// Asks another store about these limits instead. What an earlier call charged counts for nothing:
    /// its store did not answer.
    pub(super) fn acquire_from(&mut self, limits: Limits<'_>, desk: Desk<'_>) -> Reply {
        let mut before = Ask::default();
        if let Some(usage) = self.0.origin_mut() {
            usage.identity = identity(desk.store);
            usage.local = matches!(limits, Limits::Local(_));
            before = mem::take(&mut usage.ask);
        }
        for (place, key, cost) in before.asked_for() {
            self.push(limits.get(place), place.clone(), key, cost);
        }
        self.acquire(desk)
    }

    pub(super) fn ask(&self) -> &Ask {
        &self.0.origin().ask
    }

    /// Whether a limiter outside this one has charged the request to the state that was added last.
    fn was_asked(&self) -> bool {
        let Usage { identity, ask, .. } = self.0.origin();
        let outwards = self.0.outer().into_iter().flat_map(Decision::outwards);
        let mut usages = outwards.filter_map(Decision::origin::<Usage>);
        usages.any(|usage| usage.was_asked(*identity, ask.last_name()))
    }

    /// What a store's answer comes to.
    pub(super) fn decision(self, limits: Limits<'_>, answer: &Answer) -> Decision {
        let local = matches!(limits, Limits::Local(_));
        let source = if local { Source::Fallback } else { answer.source };
        self.0.decide(limits.policy(), (source, answer.now), |usage, verdicts| {
            usage.ask.read(answer, |place, cost, (standing, locked)| {
                let limit = limits.get(place);
                let (rule, shadow) = (Arc::clone(limit.rule()), limit.is_shadow());
                verdicts.push(Verdict { rule, key: place.key, cost, shadow, standing, locked });
            });
        })
    }

    /// The decision that nobody asked a store for.
    pub(super) fn unchecked(&self, policy: &Arc<str>, outcome: Outcome) -> Decision {
        let outer = self.0.outer().cloned();
        Decision::unchecked(Arc::clone(policy), outcome, outer)
    }
}

/// A store that has no identity is told from others by its place in its limiter.
fn identity(store: &dyn Store) -> usize {
    store.identity().unwrap_or_else(|| std::ptr::from_ref(store).addr())
}

impl<'a> Limits<'a> {
    fn get<'b>(self, place: &'b Place) -> &'b Limit
    where
        'a: 'b,
    {
        let variant = |policy: &'a Policy| match &place.instead {
            Some(variant) => &**variant,
            None => &policy.entries()[place.limit].own,
        };
        match self {
            Self::Policy(policy) => &variant(policy).limit,
            Self::Local(policy) => {
                let Variant { limit, local } = variant(policy);
                local.as_ref().unwrap_or(limit)
            }
            Self::Own(limits) => limits[place.limit],
        }
    }

    /// The name of the policy, if it is not the one that the limits say.
    fn policy(self) -> Option<Arc<str>> {
        match self {
            Self::Own(limits) if limits.first().is_some_and(|it| it.is_in_policy()) => {
                Some(Arc::clone(&NO_POLICY))
            }
            _ => None,
        }
    }
}
