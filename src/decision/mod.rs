//! The answer for one limit, and the answer for a request.

mod verdict;

use std::{
    any::Any,
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use http::StatusCode;
use smallvec::SmallVec;

pub(crate) use self::verdict::{Locked, Rule, RuleFields};
pub use self::verdict::{Stamp, Standing, Verdict};
use crate::time::{MICROS_PER_SEC, Timestamp};

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
    /// This process, with units that it has charged ahead.
    Lease,
    /// This process, which remembers that Redis denied the same a moment ago. What limits other than
    /// those that deny have left is then not known.
    Cache,
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
#[derive(Clone)]
pub struct Decision(Arc<Inner>);

struct Inner<O: ?Sized = dyn Origin> {
    /// The name of the policy, if the limits are not asked for their own.
    policy: Option<Arc<str>>,
    outcome: Outcome,
    source: Source,
    now: Timestamp,
    verdicts: Verdicts,
    binding: Option<usize>,
    /// What was decided for the same request by a limiter outside this one.
    outer: Option<Decision>,
    origin: O,
}

/// What the limiter that decided remembers, to charge more or give back. Only it knows what it is.
pub(crate) trait Origin: Any + Send + Sync {}

/// A decision that is still to be made, in the place where it is going to stay: it is large, and would
/// else be copied at each step of its way. Nobody shares a draft, so that it can be changed.
pub(crate) struct Draft<O>(Arc<Inner<O>>);

pub(crate) type Verdicts = SmallVec<[Verdict; 2]>;

impl<O: Origin> Draft<O> {
    pub(crate) fn new(outer: Option<Decision>, origin: O) -> Self {
        Self(Arc::new(Inner {
            policy: None,
            outcome: Outcome::Skipped,
            source: Source::None,
            now: Timestamp::default(),
            verdicts: Verdicts::new(),
            binding: None,
            outer,
            origin,
        }))
    }

    pub(crate) fn outer(&self) -> Option<&Decision> {
        self.0.outer.as_ref()
    }

    pub(crate) fn origin(&self) -> &O {
        &self.0.origin
    }

    pub(crate) fn origin_mut(&mut self) -> Option<&mut O> {
        Arc::get_mut(&mut self.0).map(|inner| &mut inner.origin)
    }

    /// What the verdicts that `judge` writes, at least one, come to; by the policy of their limits,
    /// unless there is another.
    pub(crate) fn decide(
        mut self,
        policy: Option<Arc<str>>,
        (source, now): (Source, Timestamp),
        judge: impl FnOnce(&mut O, &mut Verdicts),
    ) -> Decision {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            judge(&mut inner.origin, &mut inner.verdicts);
            let verdicts = &inner.verdicts;
            let denied = verdicts.iter().any(Verdict::denies);
            let mut binding: Option<usize> = None;
            for (at, verdict) in verdicts.iter().enumerate().filter(|(_, verdict)| !verdict.shadow)
            {
                if binding.is_none_or(|other| binds(verdict, &verdicts[other], denied)) {
                    binding = Some(at);
                }
            }
            inner.outcome = if denied { Outcome::Denied } else { Outcome::Allowed };
            (inner.policy, inner.source, inner.now, inner.binding) = (policy, source, now, binding);
        }
        Decision(self.0)
    }
}

impl Decision {
    /// The decision of a policy that let a request pass without asking.
    pub(crate) fn unchecked(policy: Arc<str>, outcome: Outcome, outer: Option<Self>) -> Self {
        Self(Arc::new(Inner {
            policy: Some(policy),
            outcome,
            source: Source::None,
            now: Timestamp::default(),
            verdicts: Verdicts::new(),
            binding: None,
            outer,
            origin: Nobody,
        }))
    }

    /// What the limiter that decided remembers, if it is of this type.
    pub(crate) fn origin<O: Origin>(&self) -> Option<&O> {
        let origin: &dyn Any = &self.0.origin;
        origin.downcast_ref()
    }

    /// The name of the policy. A decision without verdicts has one of its own.
    pub(crate) fn shared_policy(&self) -> &Arc<str> {
        static NONE: LazyLock<Arc<str>> = LazyLock::new(|| "-".into());
        let Inner { policy, verdicts, .. } = &*self.0;
        policy.as_ref().or(verdicts.first().map(|it| &it.rule.policy)).unwrap_or(&NONE)
    }

    /// This decision, and all of limiters outside the one that made it.
    pub(crate) fn outwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |decision| decision.0.outer.as_ref())
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
        self.shared_policy()
    }

    /// When it was decided, by the clock of the store.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.now
    }

    /// The answers of all limits, in the order of the policy, and of all keys where a limit counts
    /// several; empty if none was asked.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.0.verdicts
    }

    /// The answers limit by limit: those of one limit, for its keys, stand together.
    pub(crate) fn by_limit(&self) -> impl Iterator<Item = &[Verdict]> {
        self.verdicts().chunk_by(|one, next| one.name() == next.name())
    }

    /// The answer that binds: when denied, of the violated limit that frees last; otherwise of the
    /// limit that leaves the fewest further requests of this cost. `None` if no limit was asked, or
    /// only shadows were.
    #[must_use]
    pub fn binding(&self) -> Option<&Verdict> {
        self.0.verdicts.get(self.0.binding?)
    }

    /// The status of the answer to a denied request: 429 (RFC 6585 §4), or, where the binding limit
    /// has locked the key, that of its [`Lockout`](crate::Lockout).
    #[must_use]
    pub fn status(&self) -> StatusCode {
        let locked = self.binding().and_then(|verdict| verdict.locked);
        locked.map_or(StatusCode::TOO_MANY_REQUESTS, |locked| locked.status)
    }

    /// Whether a [`Lockout`](crate::Lockout) has locked one of the request's keys, or locks it by this
    /// denial. After a look, it tells of the keys that were looked at.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.0.verdicts.iter().any(|verdict| verdict.locked.is_some())
    }

    /// How long until a request like this one passes all limits, if it is alone on its keys: zero if it
    /// would now, `None` if it never does. After a look, it tells of a request of cost 1.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        let enforced = self.0.verdicts.iter().filter(|verdict| !verdict.shadow);
        enforced
            .map(|verdict| verdict.standing.wait())
            .try_fold(Duration::ZERO, |longest, wait| Some(longest.max(wait?)))
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

/// Of a decision that no store made.
struct Nobody;

impl Origin for Nobody {}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("policy", &self.policy())
            .field("outcome", &self.outcome())
            .field("source", &self.source())
            .field("now", &self.now())
            .field("verdicts", &self.verdicts())
            .finish_non_exhaustive()
    }
}
