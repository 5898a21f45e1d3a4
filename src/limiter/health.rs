use super::Limiter;
use crate::{
    algorithm::Algorithm,
    quota::Quota,
    resilience::Health,
    store::{Hit, StoreError},
};

/// No key of a request has a name that begins like this: it has no kind.
const READY: &str = "{ready}:-/ready";
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
    /// finds out also whether the store can be written, by a key that it forgets within a second.
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
        // A name of its own, or an instance that may write would hide one that may not.
        let name = format!("{READY}:{:x}", self.0.number);
        let answer = self.0.direct.acquire(&[Hit::new(name.as_bytes(), meter, 1)]).await;
        self.0.monitor.note(&answer);
        answer.map(drop)
    }
}
