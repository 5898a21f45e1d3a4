use std::{
    hash::{BuildHasher, Hash, Hasher},
    mem,
    sync::{Arc, LazyLock},
};

use foldhash::quality::RandomState;
use smallvec::SmallVec;

use super::{Desk, Limiter, ask::Ask, usage::Usage};
use crate::{
    decision::{Charged, Decision, Outcome, Source, Verdict},
    key::Key,
    policy::{Limit, Policy},
    store::{Answer, Reply},
};

/// What one request is to be charged to: places of limits, with keys.
#[derive(Debug, Default)]
pub(super) struct Charge {
    items: SmallVec<[Item; 2]>,
    /// What the request was charged to before, by limiters outside this one.
    charged: Charged,
    /// What it is charged to now.
    marks: SmallVec<[u64; 2]>,
    ask: Ask,
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

/// Marks tell states apart within one process, so nobody else need know their seed.
static MARKS: LazyLock<RandomState> = LazyLock::new(RandomState::default);

static NO_POLICY: LazyLock<Arc<str>> = LazyLock::new(|| "-".into());

impl Charge {
    /// For a request that was charged to these states before.
    pub(super) fn after(charged: &[u64]) -> Self {
        Self { charged: Charged::from_slice(charged), ..Self::default() }
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
        let identity =
            desk.store.identity().unwrap_or_else(|| std::ptr::from_ref(desk.store).addr());
        self.ask = Ask::default();
        self.marks.clear();
        for Item { at, key, cost, .. } in &self.items {
            let limit = limits.get(*at);
            let counts = (limit.meter(), *cost, limit.is_shadow(), limit.leased());
            self.ask.push(counts, |names| limit.write_name(key, names));
            let mark = mark(identity, self.ask.last_name());
            if self.charged.contains(&mark) {
                self.ask.only_look();
            }
            self.marks.push(mark);
            if let Some(lock) = limit.lock() {
                self.ask.guard(lock, |names| limit.write_lock_name(key, names));
            }
        }
        self.ask.acquire(desk)
    }

    pub(super) const fn ask(&self) -> &Ask {
        &self.ask
    }

    /// What a store's answer comes to.
    pub(super) fn decision(
        &mut self,
        limits: Limits<'_>,
        answer: &Answer,
        limiter: &Limiter,
    ) -> Decision {
        let mut ask = mem::take(&mut self.ask);
        let mut verdicts = SmallVec::new();
        for (item, (standing, locked)) in self.items.iter().zip(ask.read(answer)) {
            let limit = limits.get(item.at);
            verdicts.push(Verdict {
                name: Arc::clone(limit.shared_name()),
                quota: limit.quota(),
                key: item.index,
                cost: item.cost,
                shadow: limit.is_shadow(),
                standing,
                locked,
            });
        }
        let local = matches!(limits, Limits::Local(_));
        let source = if local { Source::Fallback } else { answer.source };
        let mut charged = mem::take(&mut self.charged);
        charged.extend_from_slice(&self.marks);
        let usage = Usage { limiter: limiter.clone(), local, ask };
        let policy = Arc::clone(limits.policy());
        Decision::new(policy, (source, answer.now), verdicts, charged, usage)
    }

    /// The decision that nobody asked a store for.
    pub(super) fn unchecked(&mut self, policy: &Policy, outcome: Outcome) -> Decision {
        let charged = mem::take(&mut self.charged);
        Decision::unchecked(Arc::clone(policy.shared_name()), outcome, charged)
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

fn mark(store: usize, key: &[u8]) -> u64 {
    let mut hasher = MARKS.build_hasher();
    store.hash(&mut hasher);
    hasher.write(key);
    hasher.finish()
}
