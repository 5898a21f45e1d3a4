use std::sync::{Arc, LazyLock};

use smallvec::SmallVec;

use super::{Desk, Limiter, ask::Ask, usage::Usage};
use crate::{
    decision::{Decision, Outcome, Source, Verdict},
    key::Key,
    policy::{Limit, Policy},
    store::{Answer, Reply},
};

/// What one request is to be charged to: places of limits, with keys.
#[derive(Debug, Default)]
pub(super) struct Charge {
    items: SmallVec<[Item; 2]>,
    /// What was decided before, by a limiter outside this one.
    outer: Option<Decision>,
    /// Which store is asked.
    identity: usize,
    /// In a box, which goes on into the decision: it is large.
    ask: Box<Ask>,
}

#[derive(Debug)]
struct Item {
    /// The place of the limit.
    at: usize,
    /// The place of the key, among those of the limit.
    index: usize,
    key: Key,
    /// Units to take.
    cost: u64,
}

/// The limits that a charge is for. It does not hold them, so that deciding clones none of them.
#[derive(Clone, Copy)]
pub(super) enum Limits<'a> {
    Policy(&'a Policy),
    /// This instance's share of a policy.
    Local(&'a Policy),
    Own(&'a [&'a Limit]),
}

static NO_POLICY: LazyLock<Arc<str>> = LazyLock::new(|| "-".into());

impl Charge {
    /// For a request about which a limiter outside this one has decided before.
    pub(super) fn after(outer: Option<&Decision>) -> Self {
        Self { outer: outer.cloned(), ..Self::default() }
    }

    /// Adds `cost` units of the limit at place `at`, for its key at place `index`.
    pub(super) fn push(&mut self, at: usize, index: usize, key: Key, cost: u64) {
        self.items.push(Item { at, index, key, cost });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Asks `store`. A state that the request was charged to before is only looked at. What an
    /// earlier call charged counts for nothing: its store did not answer.
    pub(super) fn acquire(&mut self, limits: Limits<'_>, desk: Desk<'_>) -> Reply {
        // A store that has no identity is told from others by its place in its limiter.
        let store = desk.store;
        self.identity = store.identity().unwrap_or_else(|| std::ptr::from_ref(store).addr());
        self.ask.clear();
        for Item { at, key, cost, .. } in &self.items {
            let limit = limits.get(*at);
            let counts = (limit.meter(), *cost, limit.is_shadow(), limit.leased());
            self.ask.push(counts, |names| limit.write_name(key, names));
            if self.was_asked() {
                self.ask.only_look();
            }
            if let Some(lock) = limit.lock() {
                self.ask.guard(lock, |names| limit.write_lock_name(key, names));
            }
        }
        self.ask.acquire(desk)
    }

    pub(super) fn ask(&self) -> &Ask {
        &self.ask
    }

    /// Whether a limiter outside this one has charged the request to the state that was added last.
    fn was_asked(&self) -> bool {
        let outwards = self.outer.iter().flat_map(Decision::outwards);
        let mut usages = outwards.filter_map(Decision::origin::<Usage>);
        usages.any(|usage| usage.was_asked(self.identity, self.ask.last_name()))
    }

    /// What a store's answer comes to.
    pub(super) fn decision(
        mut self,
        limits: Limits<'_>,
        answer: &Answer,
        limiter: &Limiter,
    ) -> Decision {
        let mut verdicts = SmallVec::new();
        for (item, (standing, locked)) in self.items.iter().zip(self.ask.read(answer)) {
            let limit = limits.get(item.at);
            verdicts.push(Verdict {
                rule: Arc::clone(limit.rule()),
                key: item.index,
                cost: item.cost,
                shadow: limit.is_shadow(),
                standing,
                locked,
            });
        }
        let local = matches!(limits, Limits::Local(_));
        let source = if local { Source::Fallback } else { answer.source };
        let Self { outer, identity, ask, .. } = self;
        let usage = Usage { limiter: limiter.clone(), local, identity, ask };
        let policy = Arc::clone(limits.policy());
        Decision::new(policy, (source, answer.now), verdicts, outer, usage)
    }

    /// The decision that nobody asked a store for.
    pub(super) fn unchecked(self, policy: &Policy, outcome: Outcome) -> Decision {
        Decision::unchecked(Arc::clone(policy.shared_name()), outcome, self.outer)
    }
}

impl<'a> Limits<'a> {
    fn get(self, at: usize) -> &'a Limit {
        match self {
            Self::Policy(policy) => &policy.entries()[at].limit,
            Self::Local(policy) => {
                let entry = &policy.entries()[at];
                entry.local.as_ref().unwrap_or(&entry.limit)
            }
            Self::Own(limits) => limits[at],
        }
    }

    fn policy(self) -> &'a Arc<str> {
        match self {
            Self::Policy(policy) | Self::Local(policy) => policy.shared_name(),
            Self::Own(_) => &NO_POLICY,
        }
    }
}
