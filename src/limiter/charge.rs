use std::{
    hash::{BuildHasher, Hash, Hasher},
    mem,
    sync::{Arc, LazyLock},
};

use foldhash::quality::RandomState;
use smallvec::SmallVec;

use crate::{
    decision::{Charged, Decision, Outcome, Source, Verdict},
    key::Key,
    policy::{Limit, Policy},
    store::{Answer, Hit, MAX_HITS, Reply, Store, StoreError, StoreErrorKind},
};

/// What one request is to be charged to: places of limits, with keys.
#[derive(Debug, Default)]
pub(super) struct Charge {
    items: SmallVec<[Item; 2]>,
    /// What the request was charged to before, by limiters outside this one.
    charged: Charged,
    /// What it is charged to now.
    marks: SmallVec<[u64; 2]>,
}

#[derive(Debug)]
struct Item {
    /// The place of the limit.
    at: usize,
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

    /// Adds `cost` units of the limit at this place.
    pub(super) fn push(&mut self, at: usize, key: Key, cost: u64) {
        self.items.push(Item { at, key, cost });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Asks `store`. A state that the request was charged to before is only looked at. What an
    /// earlier call charged counts for nothing: its store did not answer.
    pub(super) fn acquire(&mut self, limits: Limits<'_>, store: &dyn Store) -> Reply {
        let mut names = SmallVec::<[u8; 256]>::new();
        let mut ends = SmallVec::<[usize; MAX_HITS]>::new();
        for Item { at, key, .. } in &self.items {
            limits.get(*at).write_name(key, &mut names);
            ends.push(names.len());
        }
        let mut hits = SmallVec::<[Hit<'_>; 2]>::new();
        let mut start = 0;
        // A store that has no identity is told from others by its place in its limiter.
        let identity = store.identity().unwrap_or_else(|| std::ptr::from_ref(store).addr());
        self.marks.clear();
        for (item, end) in self.items.iter().zip(&ends) {
            let limit = limits.get(item.at);
            let key = &names[start..*end];
            let mark = mark(identity, key);
            let cost = if self.charged.contains(&mark) { 0 } else { item.cost };
            hits.push(Hit { key, meter: limit.meter(), cost, shadow: limit.is_shadow() });
            self.marks.push(mark);
            start = *end;
        }
        store.acquire(&hits)
    }

    /// An answer of a store, which may be anybody's, if it fits what was asked.
    pub(super) fn verify(&self, answer: Result<Answer, StoreError>) -> Result<Answer, StoreError> {
        let answer = answer?;
        if answer.standings.len() == self.items.len() {
            return Ok(answer);
        }
        Err(StoreError::new(
            StoreErrorKind::Unexpected,
            "the store answered for another number of limits",
        ))
    }

    /// What a store's answer comes to.
    pub(super) fn decision(&mut self, limits: Limits<'_>, answer: Answer) -> Decision {
        let mut verdicts = SmallVec::new();
        for (item, standing) in self.items.iter().zip(answer.standings) {
            let limit = limits.get(item.at);
            verdicts.push(Verdict {
                name: Arc::clone(limit.shared_name()),
                quota: limit.quota(),
                cost: item.cost,
                shadow: limit.is_shadow(),
                standing,
            });
        }
        let source = match limits {
            Limits::Local(_) => Source::Fallback,
            _ => answer.source,
        };
        let mut charged = mem::take(&mut self.charged);
        charged.extend_from_slice(&self.marks);
        Decision::new(Arc::clone(limits.policy()), source, answer.now, verdicts, charged)
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
