use smallvec::SmallVec;

use super::Limiter;
use crate::{
    algorithm::Algorithm,
    quota::Quota,
    resilience::Health,
    store::{Hit, Store, StoreError},
};

/// Names of which each part of a store has some, as good as certainly.
const NAMES: u32 = 256;
/// Never exhausted, and forgotten within a second.
const PLENTY: Quota = Quota::per_second(1_000_000);

impl Limiter {
    /// How the store does, as far as this limiter has noticed: its breaker, the last failure, and how
    /// often it failed in which way. It asks nobody, and costs next to nothing.
    ///
    /// ```
    /// use tollgate::{BreakerState, Limiter, MemoryStore, StoreErrorKind};
    ///
    /// let limiter = Limiter::new(MemoryStore::new());
    /// let health = limiter.health();
    /// assert_eq!(health.breaker(), BreakerState::Closed);
    /// assert_eq!(health.last_failure(), None);
    /// assert_eq!(health.failures(StoreErrorKind::Timeout), 0);
    /// ```
    pub fn health(&self) -> Health {
        self.0.monitor.health()
    }

    /// Asks the store for a decision that charges nobody, also while the breaker is open, and says
    /// whether it made one: for a readiness check. It takes no longer than the store's deadline, and
    /// finds out also whether the store can be written, by a key that it forgets within a second. Of a store
    /// in [several parts](Store::shard) it asks each, one after the other.
    ///
    /// Whether an instance that is not ready should get no requests depends on its policies: where they
    /// let requests pass or limit them locally, it serves all the same.
    ///
    /// ```
    /// use axum::{Router, http::StatusCode, routing::get};
    /// use tollgate::{Limiter, MemoryStore};
    ///
    /// let limiter = Limiter::new(MemoryStore::new());
    /// let ready = async move || match limiter.ready().await {
    ///     Ok(()) => (StatusCode::OK, "ready".to_owned()),
    ///     Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    /// };
    /// let app: Router = Router::new().route("/readyz", get(ready));
    /// ```
    ///
    /// # Errors
    ///
    /// If the store does not answer, or answers that it cannot decide; the error says why.
    pub async fn ready(&self) -> Result<(), StoreError> {
        let meter = Algorithm::TokenBucket.meter(PLENTY);
        let mut asked: SmallVec<[u32; 4]> = SmallVec::new();
        for at in 0..NAMES {
            // No key of a request has a name that begins like this: it has no kind. The name is of this
            // instance alone, or one that may write would hide another that may not.
            let name = format!("{{ready{at}}}:-/ready:{:x}", self.0.number);
            let shard = self.0.direct.shard(name.as_bytes());
            if asked.contains(&shard) {
                continue;
            }
            let answer = self.0.direct.acquire(&[Hit::new(name.as_bytes(), meter, 1)]).await;
            self.0.monitor.note(&answer);
            answer?;
            asked.push(shard);
            if shard == 0 {
                // There are no parts, or none is known.
                break;
            }
        }
        Ok(())
    }
}
