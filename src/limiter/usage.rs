use std::sync::Arc;

use super::{Desk, Limiter, ask::Ask};
use crate::{
    algorithm::MAX_LOG_COST,
    decision::{Decision, Draft, Origin, Outcome, Verdict, Verdicts},
    store::{Answer, StoreError},
};

/// How often a settling is denied before it gives up: others take what it has seen left.
const SETTLING: u32 = 4;

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
    fn heard(
        &self,
        ask: &Ask,
        mut answer: Result<Answer, StoreError>,
    ) -> Result<Answer, StoreError> {
        if self.local {
            ask.verify(&mut answer);
        } else {
            self.limiter.0.heard(ask, &mut answer);
        }
        answer
    }

    /// This answer. That of the fallback says nothing about the store.
    fn noted<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if !self.local {
            self.limiter.0.monitor.note(&answer);
        }
        answer
    }
}

/// A decision is also a handle to what the request was charged to, by this layer and by those outside of
/// it, for the request's handler.
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
///     let settled = match complete().await {
///         Ok(used) => decision.settle("tokens", used).await.map(drop),
///         Err(()) => decision.refund().await,
///     };
///     if settled.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
/// }
///
/// let limiter = Limiter::new(MemoryStore::new());
/// let app: Router = Router::new()
///     .route("/chat", post(chat).layer(RateLimitLayer::with_policy(policy, &limiter)));
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
impl Decision {
    /// The key that the verdict at this place of [`verdicts`](Self::verdicts) is about, in the form of
    /// [`Key::as_str`](crate::Key::as_str): to find out who is limited most. It may be personal data.
    ///
    /// ```
    /// use tollgate::{Decision, Rejection};
    ///
    /// # async fn note(_: &str, _: &str) {}
    /// async fn watch<B>(response: &http::Response<B>) {
    ///     let Some(Rejection::Limited(decision)) = response.extensions().get() else { return };
    ///     for (place, verdict) in decision.verdicts().iter().enumerate() {
    ///         if let (true, Some(key)) = (verdict.denies(), decision.key(place)) {
    ///             note(verdict.name(), key).await;
    ///         }
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn key(&self, place: usize) -> Option<&str> {
        let key = self.origin::<Usage>()?.ask.key(place)?;
        std::str::from_utf8(key).ok()
    }

    /// Charges `units` more of the limit of this name, to the keys that the request has there, and says
    /// whether that was possible; if not, nothing was charged, and it is up to the caller not to go on.
    /// What was charged belongs to the decision that is returned.
    ///
    /// The outcome is [`Skipped`](Outcome::Skipped) if no limit of this name applied to the request,
    /// and [`FailedOpen`](Outcome::FailedOpen) if the request was let pass because the store did not
    /// answer. A denial counts for a [`Lockout`](crate::Lockout).
    ///
    /// # Errors
    ///
    /// If the store does not answer. The policy's [`OnFailure`](crate::OnFailure) is for requests that
    /// have not begun, so the caller decides.
    pub async fn charge(&self, limit: &str, units: u64) -> Result<Self, StoreError> {
        let about = self.outwards().find(|decision| decision.knows(limit)).unwrap_or(self);
        about.again(|name| (name == limit).then_some(units)).await
    }

    /// Makes what the request was charged at the limit of this name come to the units that it has used:
    /// gives back what it has not, or charges what is missing, as far as that is there. Says how many
    /// units were not. Those have passed above the limit, once, as the request has already used them;
    /// the next one finds nothing left.
    ///
    /// To be called once, when the use is known. A request to which no limit of this name applied is
    /// charged nothing.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn settle(&self, limit: &str, used: u64) -> Result<u64, StoreError> {
        let about = || self.outwards().filter(|decision| decision.knows(limit));
        let Some((decision, charged)) = about()
            .map(|decision| (decision, decision.charged(limit)))
            .max_by_key(|(_, charged)| *charged)
        else {
            return Ok(0);
        };
        if used <= charged {
            return decision.refund_units(limit, charged - used).await.map(|()| 0);
        }
        let mut missing = used - charged;
        let (mut chunk, mut tries) = (missing, SETTLING);
        while missing > 0 && tries > 0 {
            let units = chunk.min(missing);
            let answer = decision.charge(limit, units).await?;
            match answer.outcome() {
                Outcome::Allowed => missing -= units,
                Outcome::Denied => {
                    tries -= 1;
                    let enforced = answer.verdicts().iter().filter(|verdict| !verdict.is_shadow());
                    let left = enforced.map(|verdict| verdict.standing().remaining()).min();
                    // What can never pass at once may pass in parts.
                    let most = if answer.retry_after().is_none() { MAX_LOG_COST } else { u64::MAX };
                    chunk = left.unwrap_or(0).min(most);
                    if chunk == 0 {
                        break;
                    }
                }
                _ => return Ok(0),
            }
        }
        Ok(missing)
    }

    /// Says how the request's keys stand with its limits by now, and charges nothing.
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn look(&self) -> Result<Self, StoreError> {
        self.again(|_| Some(0)).await
    }

    /// Gives back all that was charged for the request, by this decision and by those of layers outside,
    /// and has not come back by itself. A second call gives back nothing.
    ///
    /// Of a token bucket, that is the time that the charge has left; over any time `t` a key is then
    /// admitted at most `burst + rate × t` units, and those that were given back in that time. Of
    /// windows, it is what still counts in the window, or at the moment, that was charged. After
    /// a reset, or when the server has lost its data, it may be what others have taken since.
    ///
    /// # Errors
    ///
    /// If the store does not answer. The units may have been given back or not, and are not given back
    /// by another call.
    pub async fn refund(&self) -> Result<(), StoreError> {
        let mut done = Ok(());
        for decision in self.outwards() {
            let more = decision.give_back(|_| true, u64::MAX).await;
            done = done.and(more.map(drop));
        }
        done
    }

    /// Gives back up to `units` of what was charged to the limit of this name, for each of its keys; if
    /// there are several of this name, by the innermost layer that has charged any.
    ///
    /// # Errors
    ///
    /// As [`refund`](Self::refund).
    pub async fn refund_units(&self, limit: &str, units: u64) -> Result<(), StoreError> {
        for decision in self.outwards() {
            if decision.give_back(|name| name == limit, units).await? {
                break;
            }
        }
        Ok(())
    }

    fn knows(&self, limit: &str) -> bool {
        self.verdicts().iter().any(|verdict| verdict.name() == limit)
    }

    /// Units that were charged to each key of the limit of this name, and not given back.
    fn charged(&self, limit: &str) -> u64 {
        let Some(usage) = self.origin::<Usage>() else { return 0 };
        let verdicts = self.verdicts().iter().enumerate();
        let at = verdicts.filter(|(_, verdict)| verdict.name() == limit);
        at.map(|(at, _)| usage.ask.charged(at)).max().unwrap_or(0)
    }

    /// Whether there was anything to give back.
    async fn give_back(
        &self,
        which: impl Fn(&str) -> bool,
        units: u64,
    ) -> Result<bool, StoreError> {
        let Some(usage) = self.origin::<Usage>() else { return Ok(false) };
        let verdicts = self.verdicts().iter().enumerate();
        let at = verdicts.filter(|(_, verdict)| which(verdict.name())).map(|(at, _)| at);
        let at: Vec<usize> = at.collect();
        let Desk { store, cache, .. } = usage.desk();
        let Some(reply) = usage.ask.refund(at.iter().copied(), units, store) else {
            return Ok(false);
        };
        let done = usage.noted(reply.await);
        if let Some(cache) = cache {
            at.iter().for_each(|at| usage.ask.forget(*at, cache));
        }
        done.map(|()| true)
    }

    /// Asks again about the limits to which `units` gives a number.
    async fn again(&self, units: impl Fn(&str) -> Option<u64>) -> Result<Self, StoreError> {
        let Some(usage) = self.origin::<Usage>() else { return Ok(self.clone()) };
        let mut ask = Ask::default();
        let mut verdicts = Verdicts::new();
        for (at, verdict) in self.verdicts().iter().enumerate() {
            if let Some(units) = units(verdict.name()) {
                ask.push_again(&usage.ask, at, units);
                verdicts.push(Verdict { cost: units, ..verdict.clone() });
            }
        }
        let policy = Arc::clone(self.shared_policy());
        if verdicts.is_empty() {
            return Ok(Self::unchecked(policy, Outcome::Skipped, None));
        }
        let desk = usage.desk();
        desk.cache.into_iter().for_each(|cache| ask.begin(cache));
        let answer = ask.acquire(desk).await;
        let answer = usage.heard(&ask, answer)?;
        let Usage { local, identity, .. } = *usage;
        let decided = (if local { self.source() } else { answer.source }, answer.now);
        let usage = Usage { limiter: usage.limiter.clone(), local, identity, ask };
        let decision = Draft::new(None, usage).decide(Some(policy), decided, |usage, found| {
            let mut verdicts = verdicts.into_iter();
            usage.ask.read(&answer, |_, _, (standing, locked)| {
                found.extend(verdicts.next().map(|it| Verdict { standing, locked, ..it }));
            });
        });
        Ok(decision)
    }
}
