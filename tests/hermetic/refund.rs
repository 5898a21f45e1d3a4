//! What was charged for a request that came to nothing is given back: once, and no more than that.

mod amount;
mod latest;
mod once;
mod parts;
mod place;
mod random;

use tollgate::{Algorithm, Decision, Limit, Limiter, Quota};

/// A limit of so many units a minute.
fn tries(units: u64) -> Limit {
    Limit::new("tries", Quota::per_minute(units))
}

fn by(algorithm: Algorithm, units: u64) -> Limit {
    tries(units).algorithm(algorithm)
}

/// Takes so many units for a user, which must be there.
async fn take(limiter: &Limiter, limit: &Limit, units: u64) -> Decision {
    let decision = limiter.check(&limit.clone().cost(units), "user").await.unwrap();
    assert!(decision.is_allowed(), "{units} units are there");
    decision
}

/// What the user has left.
async fn left(limiter: &Limiter, limit: &Limit) -> u64 {
    crate::support::left(limiter, limit, "user").await
}
