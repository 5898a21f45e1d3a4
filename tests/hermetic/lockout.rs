//! A key that its limit has denied may be locked for a time.

mod bounds;
mod counting;
mod ending;
mod layer;
mod several;

use std::time::Duration;

use tollgate::{Decision, Limit, Limiter, Lockout, Quota};

use crate::support::secs;

const MICRO: Duration = Duration::from_micros(1);

/// Two tries a minute, of which the denial of this number locks for ten minutes.
fn tries(after: u64) -> Limit {
    let lockout = Lockout::new(secs(600)).after(after);
    Limit::new("tries", Quota::per_minute(2)).lockout(lockout)
}

async fn ask(limiter: &Limiter, limit: &Limit) -> Decision {
    limiter.check(limit, "user").await.unwrap()
}

async fn look(limiter: &Limiter, limit: &Limit) -> Decision {
    limiter.look(limit, "user").await.unwrap()
}

/// Takes all and is denied so many times.
async fn denied(limiter: &Limiter, limit: &Limit, times: u64) -> Decision {
    let mut decision = ask(limiter, limit).await;
    while decision.is_allowed() {
        decision = ask(limiter, limit).await;
    }
    for _ in 1..times {
        decision = ask(limiter, limit).await;
    }
    decision
}

/// How long the user is locked yet.
async fn locked(limiter: &Limiter, limit: &Limit) -> Option<Duration> {
    look(limiter, limit).await.verdicts()[0].locked()
}
