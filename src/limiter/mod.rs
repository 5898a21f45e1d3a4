//! From keys and a policy, through a store, to a decision.

mod ask;
mod builder;
mod charge;
mod decide;
mod deciding;
mod desk;
mod health;
mod usage;

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, atomic::AtomicBool},
};

use smallvec::SmallVec;

use self::{
    ask::{Ask, Place},
    charge::{Charge, Limits},
    desk::Desk,
};
pub use self::{
    builder::LimiterBuilder,
    deciding::{Deciding, Rejection, Ruling},
};
use crate::{
    accel::{DenyCache, Leases},
    decision::{Decision, Source, Stamp},
    key::{Key, Tier},
    policy::{Limit, Policy},
    resilience::Monitor,
    store::{Answer, MAX_HITS, MemoryStore, Refund, Store, StoreError, StoreErrorKind},
    telemetry,
    time::Timestamp,
};

/// Decides by a store. One serves all layers of a service; clones are cheap and share everything.
///
/// It needs no HTTP:
///
/// ```
/// use tollgate::{Limit, Limiter, MemoryStore, Quota};
///
/// # async fn run() -> Result<(), tollgate::StoreError> {
/// let limiter = Limiter::new(MemoryStore::new());
/// let mails = Limit::new("mails", Quota::per_hour(50));
/// if limiter.check(&mails, "user:42").await?.is_allowed() {
///     // send it
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Limiter(Arc<Inner>);

struct Inner {
    /// Behind its breaker, if it has one.
    store: Arc<dyn Store>,
    /// Itself.
    direct: Arc<dyn Store>,
    fallback: MemoryStore,
    monitor: Arc<Monitor>,
    cache: Option<DenyCache>,
    leases: Option<Arc<Leases>>,
    setup_logged: AtomicBool,
    /// Tells it from those of other instances.
    number: u64,
}

impl Limiter {
    /// A limiter that asks `store`.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).build()
    }

    /// A limiter that asks `store`, with settings of your own.
    pub fn builder(store: impl Store) -> LimiterBuilder {
        LimiterBuilder::new(Arc::new(store))
    }

    /// Charges `key` to `limit`, and says whether that was possible.
    ///
    /// # Errors
    ///
    /// If the store does not answer, or the limit has no valid name. No policy decides what to do
    /// then, so the caller does.
    pub async fn check(&self, limit: &Limit, key: impl Into<Key>) -> Result<Decision, StoreError> {
        self.check_all([(limit, key.into())]).await
    }

    /// Says how `key` stands with `limit`, and charges nothing: what is left, and how long until
    /// a unit is there.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub async fn look(&self, limit: &Limit, key: impl Into<Key>) -> Result<Decision, StoreError> {
        self.check(&limit.clone().cost(0), key).await
    }

    /// Gives back what was charged by this decision and has not come back by itself, once: for
    /// requests that came to nothing. [`Decision::refund_units`] gives back a part.
    ///
    /// # Errors
    ///
    /// If the store does not answer. The units may have been given back or not.
    pub async fn refund(&self, decision: &Decision) -> Result<(), StoreError> {
        decision.refund().await
    }

    /// Gives `key` back up to `units` of what it has taken of `limit`, the latest first: what was taken by
    /// mistake, where no decision is there any more to [refund](Self::refund). A limit of a policy is that
    /// of [`limit_for`](Self::limit_for).
    ///
    /// Each unit is given back as far as it has not come back by itself: of a token bucket and a log that is
    /// all of it, of a fixed window what was taken in the present one, and of a sliding counter also what was
    /// taken in the window before, which counts less by now. Nobody has more than the full quota. Over any
    /// time a key is then admitted what its limit admits, and what was given back in that time. No lock is
    /// lifted.
    ///
    /// Whose units they were, nobody knows: a decision that is refunded later may give back what others have
    /// taken. What this process counted by itself, while the store failed, stays.
    ///
    /// ```
    /// # use tollgate::{Limit, Limiter, MemoryStore, Quota};
    /// # async fn run() -> Result<(), tollgate::StoreError> {
    /// let limiter = Limiter::new(MemoryStore::new());
    /// let mails = Limit::new("mails", Quota::per_hour(50));
    /// limiter.check(&mails.clone().cost(20), "user:42").await?;
    /// limiter.give_back(&mails, "user:42", 5).await?;
    /// assert_eq!(limiter.look(&mails, "user:42").await?.remaining(), Some(35));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the store does not answer. The units may have been given back or not.
    pub async fn give_back(
        &self,
        limit: &Limit,
        key: impl Into<Key>,
        units: u64,
    ) -> Result<(), StoreError> {
        if units == 0 {
            return Ok(());
        }
        let mut name = SmallVec::<[u8; 128]>::new();
        limit.write_name(key.into().as_bytes(), &mut name);
        let (meter, stamp) = (limit.meter(), Stamp::LATEST);
        let answer = self.0.store.refund(&[Refund { key: &name, meter, units, stamp }]).await;
        self.0.monitor.note(&answer);
        if let Some(cache) = &self.0.cache {
            cache.forget(&name);
        }
        answer
    }

    /// Forgets all that `key` has taken of `limit`, and lifts its lock. A limit of a policy is that of
    /// [`Policy::limit`].
    ///
    /// ```
    /// # use tollgate::{Limiter, MemoryStore, PeerIp, Limit, Policy, Quota};
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::new(MemoryStore::new());
    /// # let login = Policy::new("login")
    /// #     .limit(PeerIp, Limit::new("tries", Quota::per_minute(5))).build()?;
    /// if let Some(tries) = login.limit("tries") {
    ///     limiter.reset(tries, PeerIp::key("192.0.2.7".parse()?)).await?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the store does not answer.
    pub async fn reset(&self, limit: &Limit, key: impl Into<Key>) -> Result<(), StoreError> {
        let key = key.into();
        let mut name = SmallVec::<[u8; 128]>::new();
        limit.write_name(key.as_bytes(), &mut name);
        let end = name.len();
        limit.write_lock_name(key.as_bytes(), &mut name);
        // Also a lock that this limit does not set any more.
        let names = &[&name[..end], &name[end..]];
        // What this process counted while the store failed is forgotten as well.
        let _ = self.0.fallback.reset(names).await;
        let answer = self.0.store.reset(names).await;
        self.0.monitor.note(&answer);
        for name in names {
            self.0.desk().forget(name);
        }
        answer
    }

    /// Charges each key to its limit, all of them or none; 1 to 64 pairs, no pair twice.
    ///
    /// ```
    /// # use tollgate::{Limit, Limiter, MemoryStore, Quota};
    /// # async fn run() -> Result<(), tollgate::StoreError> {
    /// # let limiter = Limiter::new(MemoryStore::new());
    /// let (burst, daily) = (Limit::new("burst", Quota::per_second(5)), Limit::new("daily", Quota::per_day(50)));
    /// let decision = limiter.check_all([(&burst, "user:42"), (&daily, "user:42")]).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the store does not answer, or the pairs are not as they must be.
    pub async fn check_all<'a, K: Into<Key>>(
        &self,
        pairs: impl IntoIterator<Item = (&'a Limit, K)>,
    ) -> Result<Decision, StoreError> {
        let (limits, mut charge) = self.gather(pairs)?;
        let limits = Limits::Own(&limits);
        let timer = telemetry::Timer::start();
        let mut answer = match charge.acquire(self.0.desk()).try_now() {
            Ok(answer) => answer,
            Err(reply) => {
                let answer = reply.await;
                timer.stop();
                answer
            }
        };
        self.0.heard(charge.ask(), &mut answer);
        Ok(decided(charge.decision(limits, &answer?)))
    }

    /// Limits of the caller's own, and what is to be charged to them.
    fn gather<'a, K: Into<Key>>(
        &self,
        pairs: impl IntoIterator<Item = (&'a Limit, K)>,
    ) -> Result<(SmallVec<[&'a Limit; 2]>, Charge), StoreError> {
        let mut limits = SmallVec::new();
        let mut charge = Charge::after(None, self);
        for (limit, key) in pairs {
            limit.check().map_err(|cause| {
                StoreError::new(StoreErrorKind::Misconfigured, cause.to_string())
            })?;
            let place = Place::new(limits.len(), 0);
            charge.push(limit, place, key.into().as_bytes(), limit.units());
            limits.push(limit);
        }
        if limits.is_empty() || limits.len() > MAX_PAIRS {
            return Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                format!("a request has {} limits, and must have 1 to {MAX_PAIRS}", limits.len()),
            ));
        }
        Ok((limits, charge))
    }

    /// The limit of this name that applies to `key` by `policy`, with the quota of its own or else of
    /// `tier`: to look at it, or to reset it. None, if there is no such limit, or it does not apply.
    ///
    /// ```
    /// # use tollgate::{Limiter, MemoryStore, PeerIp, Limit, Policy, Quota, Tier};
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::new(MemoryStore::new());
    /// let requests = Limit::new("requests", Quota::per_minute(5)).tier("pro", Quota::per_minute(500));
    /// let api = Policy::new("api").limit(PeerIp, requests).build()?;
    /// let key = PeerIp::key("192.0.2.7".parse()?);
    /// if let Some(limit) = limiter.limit_for(&api, "requests", Some(&Tier::new("pro")), &key) {
    ///     println!("{:?} left", limiter.look(&limit, key).await?.remaining());
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn limit_for(
        &self,
        policy: &Policy,
        name: &str,
        tier: Option<&Tier>,
        key: &Key,
    ) -> Option<Limit> {
        policy.limit_for(name, tier, key, || self.now())
    }

    /// The time by the clock of this process.
    fn now(&self) -> Timestamp {
        self.0.fallback.clock().now()
    }

    /// Finishes what is pending with the store, before the process ends.
    pub fn shutdown(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if let Some(leases) = &self.0.leases {
                leases.give_back().await;
            }
            self.0.store.shutdown().await;
        })
    }
}

/// The most limits and keys of one check: as many as a policy can have.
const MAX_PAIRS: usize = MAX_HITS / 2;

impl Inner {
    fn desk(&self) -> Desk<'_> {
        let (leases, cache) = (self.leases.as_deref(), self.cache.as_ref());
        Desk { store: &*self.store, leases, cache, monitor: Some(&self.monitor) }
    }

    /// This process alone, while the store does not answer.
    fn alone(&self) -> Desk<'_> {
        Desk { store: &self.fallback, leases: None, cache: None, monitor: None }
    }

    /// Takes note of the store's answer, which, of anybody's store, need not fit what was asked.
    fn heard(&self, ask: &Ask, answer: &mut Result<Answer, StoreError>) {
        ask.verify(answer);
        if let Ok(Answer { source: Source::Cache | Source::Lease, .. }) = answer {
            return;
        }
        self.monitor.note(answer);
        if let (Some(cache), Ok(answer)) = (&self.cache, answer) {
            ask.teach(cache, answer);
        }
    }
}

fn decided(decision: Decision) -> Decision {
    telemetry::decided(&decision);
    decision
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("store", &self.0.store).finish()
    }
}
