use std::sync::Arc;

use super::{Desk, Limiter, ask::Ask};
use crate::{
    decision::{Decision, Origin, Outcome, Verdict},
    store::{Answer, StoreError},
};

/// What is needed to charge more, or to give back.
#[derive(Debug)]
pub(super) struct Usage {
    pub(super) limiter: Limiter,
    /// Whether the limiter's fallback decided.
    pub(super) local: bool,
    /// Which store that was.
    pub(super) identity: usize,
    pub(super) ask: Ask,
}

impl Origin for Usage {}

impl Usage {
    /// Whether this store was asked about a state of this name.
    pub(super) fn was_asked(&self, identity: usize, name: &[u8]) -> bool {
        self.identity == identity && self.ask.has(name)
    }

    fn desk(&self) -> Desk<'_> {
        let inner = &self.limiter.0;
        if self.local { inner.alone() } else { inner.desk() }
    }

    /// This answer, once it is noted and known to fit what was asked.
    fn heard(&self, ask: &Ask, answer: Result<Answer, StoreError>) -> Result<Answer, StoreError> {
        if self.local { ask.verify(answer) } else { self.limiter.0.heard(ask, answer) }
    }

    /// This answer. That of the fallback says nothing about the store.
    fn noted<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if !self.local {
            self.limiter.0.health.note(&answer);
        }
        answer
    }
}

/// A decision is also a handle to what it was about, for the handler of the request and for layers
/// outside of it.
///
/// ```
/// use axum::{Extension, Router, http::StatusCode, routing::post};
/// use tollgate::{Decision, Limit, Limiter, MemoryStore, PeerIp, Policy, Quota, RateLimitLayer};
///
/// # async fn complete() -> Result<u64, ()> { Ok(20) }
/// // Each request takes 100 tokens, and what it has really used once that is known.
/// let policy = Policy::new("chat")
///     .limit(PeerIp, Limit::new("tokens", Quota::per_minute(10_000)).cost(100))
///     .build()?;
///
/// async fn chat(Extension(decision): Extension<Decision>) -> StatusCode {
///     match complete().await {
///         Ok(used) if used > 100 => drop(decision.charge("tokens", used - 100).await),
///         Ok(used) => drop(decision.refund_units("tokens", 100 - used).await),
///         Err(()) => drop(decision.refund().await),
///     }
///     StatusCode::OK
/// }
///
/// let limiter = Limiter::new(MemoryStore::new());
/// let app: Router = Router::new()
///     .route("/chat", post(chat).layer(RateLimitLayer::with_policy(policy, &limiter)));
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
impl Decision {
    /// Charges `units` more of the limit of this name, to the keys that the request has there, and says
    /// whether that was possible; if not, nothing was charged.
    ///
    /// The outcome is [`Skipped`](Outcome::Skipped) if no limit of this name applied to the request,
    /// and [`FailedOpen`](Outcome::FailedOpen) if the request was let pass because the store did not
    /// answer.
    ///
    /// # Errors
    ///
    /// If the store does not answer. The policy's [`OnFailure`](crate::OnFailure) is for requests that
    /// have not begun, so the caller decides.
    pub async fn charge(&self, limit: &str, units: u64) -> Result<Self, StoreError> {
        self.again(|name| (name == limit).then_some(units)).await
    }

    /// Says how the request's keys stand with its limits by now, and charges nothing.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn look(&self) -> Result<Self, StoreError> {
        self.again(|_| Some(0)).await
    }

    /// Gives back all that was charged by this decision and has not come back by itself. A second call
    /// gives back nothing, and what another layer has charged is left to it: of one policy on a router
    /// and on a route, the outer layer's decision is the one that charged.
    ///
    /// Of a token bucket, that is the time that the charge has left; over any time `t` a key is then
    /// admitted at most `burst + rate × t` units, and those that were given back in that time. Of
    /// windows, it is what still counts in the window, or at the moment, that was charged.
    ///
    /// # Errors
    ///
    /// If the store does not answer. The units may have been given back or not, and are not given back
    /// by another call.
    pub async fn refund(&self) -> Result<(), StoreError> {
        self.give_back(|_| true, u64::MAX).await
    }

    /// Gives back up to `units` of what was charged to the limit of this name, for each of its keys.
    ///
    /// # Errors
    ///
    /// As [`refund`](Self::refund).
    pub async fn refund_units(&self, limit: &str, units: u64) -> Result<(), StoreError> {
        self.give_back(|name| name == limit, units).await
    }

    async fn give_back(&self, which: impl Fn(&str) -> bool, units: u64) -> Result<(), StoreError> {
        let Some(usage) = self.origin::<Usage>() else { return Ok(()) };
        let verdicts = self.verdicts().iter().enumerate();
        let at = verdicts.filter(|(_, verdict)| which(verdict.name())).map(|(at, _)| at);
        let at: Vec<usize> = at.collect();
        let Desk { store, cache, .. } = usage.desk();
        let Some(reply) = usage.ask.refund(at.iter().copied(), units, store) else { return Ok(()) };
        let done = usage.noted(reply.await);
        if let Some(cache) = cache {
            at.iter().for_each(|at| usage.ask.forget(*at, cache));
        }
        done
    }

    /// Asks again about the limits to which `units` gives a number.
    async fn again(&self, units: impl Fn(&str) -> Option<u64>) -> Result<Self, StoreError> {
        let Some(usage) = self.origin::<Usage>() else { return Ok(self.clone()) };
        let mut ask = Ask::default();
        let mut verdicts = Vec::new();
        for (at, verdict) in self.verdicts().iter().enumerate() {
            if let Some(units) = units(verdict.name()) {
                ask.push_again(&usage.ask, at, units);
                verdicts.push((verdict.clone(), units));
            }
        }
        let policy = Arc::clone(self.shared_policy());
        if verdicts.is_empty() {
            return Ok(Self::unchecked(policy, Outcome::Skipped, None));
        }
        let answer = ask.acquire(usage.desk()).await;
        let answer = usage.heard(&ask, answer)?;
        let found = ask.read(&answer);
        let verdicts =
            verdicts.into_iter().zip(found).map(|((verdict, cost), (standing, locked))| Verdict {
                cost,
                standing,
                locked,
                ..verdict
            });
        let Usage { local, identity, .. } = *usage;
        let usage = Usage { limiter: usage.limiter.clone(), local, identity, ask };
        let decided = (if usage.local { self.source() } else { answer.source }, answer.now);
        Ok(Self::new(policy, decided, verdicts.collect(), None, usage))
    }
}
