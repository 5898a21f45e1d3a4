//! What tests share: services, stores, a client, and a record of the log.

mod client;
mod log;
mod probe;
mod request;
mod store;

use std::time::Duration;

use http::{HeaderMap, Response};
use tollgate::{Algorithm, Global, Limit, Limiter, ManualClock, MemoryStore, Policy, Timestamp};

pub(crate) use self::{
    client::{Client, send},
    log::Log,
    probe::Probe,
    request::{about, asking, decide, left},
    store::{Broken, Flaky, Gated, Later},
};

/// A store whose time stands still until the clock is told to move; it begins at a whole second.
pub(crate) fn memory() -> (MemoryStore, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::builder().clock(clock.clone()).build(), clock)
}

/// A policy that counts all requests together.
pub(crate) fn policy(name: &'static str, limits: impl IntoIterator<Item = Limit>) -> Policy {
    let limits = limits.into_iter();
    limits.fold(Policy::new(name), |policy, limit| policy.limit(Global, limit)).build().unwrap()
}

/// A limiter in memory, with its clock.
pub(crate) fn limiter() -> (Limiter, ManualClock) {
    let (store, clock) = memory();
    (Limiter::new(store), clock)
}

/// Two limiters in memory, each with its clock: one answers at once, the other later.
pub(crate) fn limiters() -> [(Limiter, ManualClock); 2] {
    let (store, clock) = memory();
    [limiter(), (Limiter::new(Later(store)), clock)]
}

/// The algorithms that take a quota of any period.
pub(crate) const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::TokenBucket,
    Algorithm::SlidingLog,
    Algorithm::SlidingCounter,
    Algorithm::FixedWindow,
];

/// The one value of a header field; fails where a field is sent twice.
pub(crate) fn field<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    assert!(values.next().is_none(), "{name} is there twice: {headers:?}");
    Some(first.to_str().unwrap())
}

/// The one value of a numeric header field.
pub(crate) fn number<B>(response: &Response<B>, name: &str) -> Option<u64> {
    field(response.headers(), name).map(|value| value.parse().unwrap())
}

/// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
pub(crate) fn x_fields<B>(response: &Response<B>) -> [Option<u64>; 3] {
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]
        .map(|name| number(response, name))
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The second that a point in time lies in.
pub(crate) const fn second(at: Timestamp) -> u64 {
    at.as_micros() / 1_000_000
}
