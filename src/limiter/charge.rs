use std::{
    hash::{BuildHasher, Hash, Hasher},
    sync::{Arc, LazyLock},
};

use foldhash::quality::RandomState;
use smallvec::SmallVec;

use crate::{
    decision::{Charged, Decision, Outcome, Source, Standing, Verdict},
    key::Key,
    policy::{Limit, Policy},
    store::{Answer, Hit, MAX_HITS, Reply, Store, StoreError, StoreErrorKind},
};

/// What one request is to be charged to.
#[derive(Debug)]
pub(super) struct Charge {
    limits: Limits,
    /// Keys, each with the place of its limit.
    keys: SmallVec<[(usize, Key); 2]>,
    /// What the request was charged to before, by limiters outside this one.
    charged: Charged,
    /// What it is charged to now.
    marks: SmallVec<[u64; 2]>,
}

#[derive(Debug)]
enum Limits {
    Policy(Policy),
    /// This instance's share of a policy.
    Local(Policy),
    Own(SmallVec<[Limit; 1]>),
}

/// Marks tell states apart within one process, so nobody else need know their seed.
static MARKS: LazyLock<RandomState> = LazyLock::new(RandomState::default);

static NO_POLICY: LazyLock<Arc<str>> = LazyLock::new(|| "-".into());

impl Charge {
    pub(super) fn of_policy(policy: &Policy, charged: &[u64]) -> Self {
        Self {
            limits: Limits::Policy(policy.clone()),
            keys: SmallVec::new(),
            charged: Charged::from_slice(charged),
            marks: SmallVec::new(),
        }
    }

    pub(super) fn of_limits<'a>(
        pairs: impl IntoIterator<Item = (&'a Limit, Key)>,
    ) -> Result<Self, StoreError> {
        let mut limits = SmallVec::new();
        let mut keys = SmallVec::new();
        for (limit, key) in pairs {
            limit.check().map_err(|cause| {
                StoreError::new(StoreErrorKind::Misconfigured, cause.to_string())
            })?;
            keys.push((limits.len(), key));
            limits.push(limit.clone());
        }
        let limits = Limits::Own(limits);
        Ok(Self { limits, keys, charged: Charged::new(), marks: SmallVec::new() })
    }

    pub(super) fn push(&mut self, at: usize, key: Key) {
        self.keys.push((at, key));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The same keys, for this instance's share of the policy; the first charge came to nothing.
    pub(super) fn into_local(mut self) -> Self {
        if let Limits::Policy(policy) = &self.limits {
            self.limits = Limits::Local(policy.clone());
        }
        self
    }

    pub(super) fn policy(&self) -> &Arc<str> {
        match &self.limits {
            Limits::Policy(policy) | Limits::Local(policy) => policy.shared_name(),
            Limits::Own(_) => &NO_POLICY,
        }
    }

    /// Asks `store`. A state that the request was charged to before is only looked at.
    pub(super) fn acquire(&mut self, store: &dyn Store) -> Reply {
        let mut names = SmallVec::<[u8; 256]>::new();
        let mut ends = SmallVec::<[usize; MAX_HITS]>::new();
        for (at, key) in &self.keys {
            self.limits.get(*at).write_name(key, &mut names);
            ends.push(names.len());
        }
        let mut hits = SmallVec::<[Hit<'_>; 2]>::new();
        let mut start = 0;
        // A store that has no identity is told from others by its place in its limiter.
        let identity = store.identity().unwrap_or_else(|| std::ptr::from_ref(store).addr());
        self.marks.clear();
        for ((at, _), end) in self.keys.iter().zip(ends) {
            let limit = self.limits.get(*at);
            let key = &names[start..end];
            let mark = mark(identity, key);
            let cost = if self.charged.contains(&mark) { 0 } else { limit.units() };
            hits.push(Hit { key, bucket: limit.bucket(), cost });
            self.marks.push(mark);
            start = end;
        }
        store.acquire(&hits)
    }

    /// An answer of a store, which may be anybody's, if it fits what was asked.
    pub(super) fn verify(&self, answer: Result<Answer, StoreError>) -> Result<Answer, StoreError> {
        let answer = answer?;
        if answer.standings.len() == self.keys.len() {
            return Ok(answer);
        }
        Err(StoreError::new(
            StoreErrorKind::Unexpected,
            "the store answered for another number of limits",
        ))
    }

    /// What a store's answer comes to.
    pub(super) fn decision(self, answer: Answer) -> Decision {
        let verdict = |((at, _), standing): (&(usize, Key), Standing)| {
            let limit = self.limits.get(*at);
            Verdict {
                name: Arc::clone(limit.shared_name()),
                quota: limit.quota(),
                cost: limit.units(),
                standing,
            }
        };
        let verdicts = self.keys.iter().zip(answer.standings).map(verdict).collect();
        let policy = Arc::clone(self.policy());
        let source = match self.limits {
            Limits::Local(_) => Source::Fallback,
            _ => answer.source,
        };
        let mut charged = self.charged;
        charged.extend(self.marks);
        Decision::new(policy, source, answer.now, verdicts, charged)
    }

    /// The decision that nobody asked a store for.
    pub(super) fn unchecked(self, outcome: Outcome) -> Decision {
        Decision::unchecked(Arc::clone(self.policy()), outcome, self.charged)
    }
}

impl Limits {
    fn get(&self, at: usize) -> &Limit {
        match self {
            Self::Policy(policy) => &policy.entries()[at].limit,
            Self::Local(policy) => {
                let entry = &policy.entries()[at];
                entry.local.as_ref().unwrap_or(&entry.limit)
            }
            Self::Own(limits) => &limits[at],
        }
    }
}

fn mark(store: usize, key: &[u8]) -> u64 {
    let mut hasher = MARKS.build_hasher();
    store.hash(&mut hasher);
    hasher.write(key);
    hasher.finish()
}
