//! The answer for one limit, and the answer for a request.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;

use crate::{
    quota::Quota,
    time::{MICROS_PER_SEC, Timestamp},
};

/// Where a key stands with one limit, after a request was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub(crate) fits: bool,
    pub(crate) remaining: u64,
    /// Microseconds until a request of the same cost passes; none if it never does.
    pub(crate) wait: Option<u64>,
    /// Microseconds until nothing is taken.
    pub(crate) reset: u64,
}

impl Standing {
    /// Whether this limit alone would have admitted the request.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.fits
    }

    /// Units that are left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// How long until this limit admits a further request of the same cost (of cost 1, after
    /// a request of cost 0): zero if it would now, `None` if the cost is above what the limit can
    /// ever grant.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.wait.map(Duration::from_micros)
    }

    /// How long until all units are back.
    #[must_use]
    pub const fn reset(&self) -> Duration {
        Duration::from_micros(self.reset)
    }
}

/// The answer of one limit.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub(crate) name: Arc<str>,
    pub(crate) quota: Quota,
    pub(crate) cost: u64,
    pub(crate) shadow: bool,
    pub(crate) standing: Standing,
}

impl Verdict {
    /// The name of the limit.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The quota that was enforced.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// Units that the request asked for.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether the limit only watches: that it does not fit denies nothing.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.shadow
    }

    /// Whether the limit denied the request.
    #[must_use]
    pub const fn denies(&self) -> bool {
        !self.shadow && !self.standing.fits
    }

    /// Where the key stands now.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// Microseconds until the moment that clients are told: when all units are back if some are
    /// left, otherwise when a request like this one passes.
    pub(crate) fn reset_micros(&self, allowed: bool) -> Option<u64> {
        if allowed && self.standing.remaining > 0 {
            return Some(self.standing.reset);
        }
        self.standing.wait
    }

    /// Orders the limits of an admitted request by what they leave for more of its kind.
    fn scarcity(&self) -> (u64, std::cmp::Reverse<Option<u64>>) {
        let further = self.standing.remaining / self.cost.max(1);
        (further, std::cmp::Reverse(self.reset_micros(true)))
    }
}

/// How a request was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// All limits admitted it, and all were charged.
    Allowed,
    /// At least one limit did not, and none was charged.
    Denied,
    /// The store did not answer, and the policy lets requests pass then.
    FailedOpen,
    /// No limit applied to it.
    Skipped,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// Redis, or a server that speaks its protocol.
    Redis,
    /// A store in this process.
    Memory,
    /// This process, with its share of the limit, while the store does not answer.
    Fallback,
    /// A store that this crate does not know.
    Other,
    /// Nobody had to.
    None,
}

/// The answer for a request, found in the extensions of the request and of its response.
///
/// ```
/// use axum::{Extension, Router, routing::get};
/// use tollgate::{Decision, MemoryStore, PeerIp, Quota, RateLimitLayer};
///
/// async fn hello(Extension(decision): Extension<Decision>) -> String {
///     format!("{:?} requests left", decision.remaining())
/// }
///
/// let app: Router = Router::new()
///     .route("/", get(hello))
///     .layer(RateLimitLayer::new(PeerIp, Quota::per_minute(100), MemoryStore::new()));
/// ```
#[derive(Clone, Debug)]
pub struct Decision(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    policy: Arc<str>,
    outcome: Outcome,
    source: Source,
    now: Timestamp,
    verdicts: SmallVec<[Verdict; 2]>,
    binding: Option<usize>,
    charged: Charged,
}

/// Marks of all states that a request was charged to so far, by this layer and by those outside it.
pub(crate) type Charged = SmallVec<[u64; 4]>;

impl Decision {
    /// The decision that `verdicts`, one for each limit, come to.
    pub(crate) fn new(
        policy: Arc<str>,
        source: Source,
        now: Timestamp,
        verdicts: SmallVec<[Verdict; 2]>,
        charged: Charged,
    ) -> Self {
        let denied = verdicts.iter().any(Verdict::denies);
        let outcome = if denied { Outcome::Denied } else { Outcome::Allowed };
        let mut binding: Option<usize> = None;
        for (at, verdict) in verdicts.iter().enumerate().filter(|(_, verdict)| !verdict.shadow) {
            if binding.is_none_or(|other| binds(verdict, &verdicts[other], denied)) {
                binding = Some(at);
            }
        }
        Self(Arc::new(Inner { policy, outcome, source, now, verdicts, binding, charged }))
    }

    /// The decision of a policy that let a request pass without asking.
    pub(crate) fn unchecked(policy: Arc<str>, outcome: Outcome, charged: Charged) -> Self {
        Self(Arc::new(Inner {
            policy,
            outcome,
            source: Source::None,
            now: Timestamp::default(),
            verdicts: SmallVec::new(),
            binding: None,
            charged,
        }))
    }

    pub(crate) fn shared_policy(&self) -> &Arc<str> {
        &self.0.policy
    }

    pub(crate) fn charged(&self) -> &[u64] {
        &self.0.charged
    }

    /// Whether the request may pass.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.0.outcome != Outcome::Denied
    }

    /// How the request was decided.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// Who decided.
    #[must_use]
    pub fn source(&self) -> Source {
        self.0.source
    }

    /// The name of the policy.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.0.policy
    }

    /// When it was decided, by the clock of the store.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.now
    }

    /// The answers of all limits, in the order of the policy; empty if none was asked.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.0.verdicts
    }

    /// The answer that binds: when denied, of the violated limit that frees last; otherwise of the
    /// limit that leaves the fewest further requests of this cost. `None` if no limit was asked, or
    /// only shadows were.
    #[must_use]
    pub fn binding(&self) -> Option<&Verdict> {
        self.0.verdicts.get(self.0.binding?)
    }

    /// Units that the binding limit has left.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.binding().map(|verdict| verdict.standing.remaining)
    }

    /// How long a denied client has to wait until the same request passes, if it is alone on its
    /// keys. `None` if it was not denied, or if its cost is above what a limit can ever grant.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if self.is_allowed() {
            return None;
        }
        self.binding().and_then(|verdict| verdict.standing.wait())
    }

    /// Whole seconds for `Retry-After`: rounded up, and at least one.
    pub(crate) fn retry_after_secs(&self) -> Option<u64> {
        let wait = self.binding().filter(|_| !self.is_allowed())?.standing.wait?;
        Some(wait.div_ceil(MICROS_PER_SEC).max(1))
    }

    /// Whether this decision leaves a client less than `other` does.
    pub(crate) fn is_stricter_than(&self, other: &Self) -> bool {
        let (Some(mine), Some(theirs)) = (self.binding(), other.binding()) else {
            return self.binding().is_some();
        };
        match (self.is_allowed(), other.is_allowed()) {
            (true, true) => binds(mine, theirs, false),
            (false, false) => binds(mine, theirs, true),
            (allowed, _) => !allowed,
        }
    }
}

/// Whether `verdict` tells a client more than `other`, ties included.
fn binds(verdict: &Verdict, other: &Verdict, denied: bool) -> bool {
    if !denied {
        return verdict.scarcity() <= other.scarcity();
    }
    // A wait that never ends is the longest.
    let wait = |verdict: &Verdict| {
        (!verdict.standing.fits).then(|| verdict.standing.wait.unwrap_or(u64::MAX))
    };
    wait(verdict) >= wait(other)
}
