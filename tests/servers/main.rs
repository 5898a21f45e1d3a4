//! Tests against real servers, which they start themselves.

#![cfg(test)]

mod atomic;
mod batches;
mod books;
mod breaker;
#[cfg(any(feature = "redis-cluster", feature = "redis-sentinel"))]
#[path = "../clock/mod.rs"]
mod clock;
#[cfg(feature = "redis-cluster")]
mod cluster;
mod costs;
mod denials;
mod differential;
mod exact;
mod hostile;
mod known_keys;
mod lua_faults;
#[cfg(all(feature = "redis-cluster", feature = "redis-sentinel"))]
mod mistaken;
mod outage;
mod overload;
mod own_thread;
mod refusals;
mod replay;
mod rights;
mod script;
mod script_cache;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
mod startup;
mod support;
#[path = "../tally/mod.rs"]
mod tally;
#[cfg(feature = "tls")]
mod tls;
mod urls;
mod versions;
