//! Deciding about a request by a policy.

use std::sync::{Arc, atomic::Ordering};

use super::{
    Deciding, Inner, Limiter, Rejection, Ruling,
    ask::Place,
    charge::{Charge, Limits, NO_POLICY},
    decided,
};
use crate::{
    decision::Outcome,
    key::{Key, KeyError, RequestHead, Route},
    policy::{Applies, Entry, Listed, Match, OnFailure, OnMissingKey, Policy, PolicySet},
    store::{Answer, StoreError, StoreErrorKind},
    telemetry,
};

impl Limiter {
    /// Decides about a request by `policy`. What a [`RateLimitLayer`](crate::RateLimitLayer) does,
    /// for those who write a middleware of their own: put an admitting decision into the request's
    /// extensions, and limiters further in will not charge the same state twice.
    pub fn decide(&self, policy: &Policy, head: RequestHead<'_>) -> Deciding {
        match policy.listed(head) {
            Listed::Not => {}
            Listed::Allowed => return self.skip(policy.shared_name(), head),
            Listed::Denied => return blocked(policy),
        }
        let mut charge = Charge::after(head.extension(), self);
        for (at, entry) in policy.entries().iter().enumerate() {
            let keys = entry.key.extract(head);
            match keys.and_then(|keys| Ok((keys.places()?, keys))) {
                Ok((places, keys)) => {
                    for place in places {
                        self.push(&mut charge, head, (at, entry), (place, &keys[place]));
                    }
                }
                Err(error) => match self.0.missing(policy, &error) {
                    Missing::Skip => {}
                    Missing::Anonymous => {
                        let key = Key::new("anonymous", "");
                        self.push(&mut charge, head, (at, entry), (0, &key));
                    }
                    Missing::Reject(error) => {
                        telemetry::no_key(policy.shared_name(), &error);
                        return Deciding::ready(Ruling::Reject(Rejection::NoKey(error)));
                    }
                },
            }
        }
        if charge.is_empty() {
            let decision = charge.unchecked(policy.shared_name(), Outcome::Skipped);
            return Deciding::ready(Ruling::Admit(decided(decision)));
        }
        let timer = telemetry::Timer::start();
        match charge.acquire(self.0.desk()).try_now() {
            Ok(answer) => Deciding::ready(self.rule(policy, charge, answer)),
            Err(reply) => Deciding::waiting(self.clone(), policy.clone(), charge, reply, timer),
        }
    }

    /// Decides about a request by the policy of its route, if one applies to it.
    pub fn decide_by(&self, policies: &PolicySet, head: RequestHead<'_>) -> Deciding {
        if let Some(Match { policy, template, params, .. }) = policies.matched(head) {
            let Some(policy) = policy else { return self.pass(head) };
            let route = Route { template, params: &params };
            return self.decide(policy, head.on(&route));
        }
        if let Some(policy) = policies.otherwise() {
            return self.decide(policy, head);
        }
        self.pass(head)
    }

    /// Lets a preflight pass, but not of a caller whom the policy denies.
    pub(crate) fn preflight(&self, policy: Option<&Policy>, head: RequestHead<'_>) -> Deciding {
        match policy.map(|policy| (policy, policy.listed(head))) {
            Some((policy, Listed::Denied)) => blocked(policy),
            _ => self.pass(head),
        }
    }

    /// Lets a request pass to which no policy applies.
    pub(crate) fn pass(&self, head: RequestHead<'_>) -> Deciding {
        self.skip(&NO_POLICY, head)
    }

    fn skip(&self, policy: &Arc<str>, head: RequestHead<'_>) -> Deciding {
        let charge = Charge::after(head.extension(), self);
        let decision = charge.unchecked(policy, Outcome::Skipped);
        Deciding::ready(Ruling::Admit(decided(decision)))
    }

    /// Adds what a request is to be charged for one of its keys, by the limit that applies to it.
    fn push(
        &self,
        charge: &mut Charge,
        head: RequestHead<'_>,
        (at, entry): (usize, &Entry),
        (place, key): (usize, &Key),
    ) {
        let units = entry.own.limit.units_of(head);
        let mut place = Place::new(at, place);
        let Some(others) = &entry.others else {
            return charge.push(&entry.own.limit, place, key.as_bytes(), units);
        };
        match others.applies(head, key, || self.now()) {
            Applies::Own => charge.push(&entry.own.limit, place, key.as_bytes(), units),
            Applies::Instead(variant) => {
                place.instead = Some(Arc::clone(&variant));
                charge.push(&variant.limit, place, key.as_bytes(), units);
            }
            Applies::Not => {}
        }
    }

    /// What becomes of a request, by the store's answer.
    pub(super) fn rule(
        &self,
        policy: &Policy,
        charge: Charge,
        mut answer: Result<Answer, StoreError>,
    ) -> Ruling {
        self.0.heard(charge.ask(), &mut answer);
        match &answer {
            Ok(answer) => Ruling::of(decided(charge.decision(Limits::Policy(policy), answer))),
            Err(error) => self.failed(policy, charge, error.kind()),
        }
    }

    /// What the policy wants for a request that the store did not decide.
    fn failed(&self, policy: &Policy, mut charge: Charge, kind: StoreErrorKind) -> Ruling {
        match policy.on_failure().of(kind) {
            // Never `ByKind`: that is what `of` has looked up.
            OnFailure::Allow | OnFailure::ByKind(_) => {
                Ruling::Admit(decided(charge.unchecked(policy.shared_name(), Outcome::FailedOpen)))
            }
            OnFailure::Local { .. } => {
                let limits = Limits::Local(policy);
                match charge.acquire_from(limits, self.0.alone()).try_now() {
                    Ok(Ok(answer)) => Ruling::of(decided(charge.decision(limits, &answer))),
                    _ => closed(policy, kind),
                }
            }
            OnFailure::Deny => closed(policy, kind),
        }
    }
}

enum Missing {
    Skip,
    Anonymous,
    Reject(KeyError),
}

impl Inner {
    fn missing(&self, policy: &Policy, error: &KeyError) -> Missing {
        if error.is_setup() && !self.setup_logged.swap(true, Ordering::Relaxed) {
            telemetry::no_key_possible(policy.name(), error);
        }
        match policy.on_missing_key() {
            // What is malformed is not absent: nobody gets around a limit by garbling a key.
            OnMissingKey::Anonymous if error.is_missing() || error.is_setup() => Missing::Anonymous,
            OnMissingKey::Skip if error.is_missing() => Missing::Skip,
            OnMissingKey::RejectWith(status) => Missing::Reject(error.clone().with_status(status)),
            OnMissingKey::Reject | OnMissingKey::Skip | OnMissingKey::Anonymous => {
                Missing::Reject(error.clone())
            }
        }
    }
}

fn blocked(policy: &Policy) -> Deciding {
    telemetry::blocked(policy.shared_name());
    Deciding::ready(Ruling::Reject(Rejection::Blocked))
}

fn closed(policy: &Policy, kind: StoreErrorKind) -> Ruling {
    telemetry::failed_closed(policy.shared_name());
    Ruling::Reject(Rejection::StoreFailed(kind))
}
