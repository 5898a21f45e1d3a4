//! What the tests against real servers stand on: servers that can be killed, frozen and restarted,
//! a proxy that misbehaves on demand, callers that keep calling, and a record of what was logged.
//!
//! Nothing here uses the crate under test or its Redis client, so a fault in either cannot hide
//! itself.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the harness measures real time")]

mod binary;
#[cfg(feature = "redis-cluster")]
pub(crate) mod cluster;
pub(crate) mod fake;
#[cfg(any(feature = "redis-cluster", feature = "redis-sentinel"))]
pub(crate) mod front;
mod launch;
mod load;
mod log;
mod port;
mod process;
mod proxy;
mod resp;
mod self_test;
#[cfg(feature = "redis-sentinel")]
pub(crate) mod sentinel;
mod server;
mod skip;

#[cfg(feature = "redis-cluster")]
pub(crate) use self::load::Running;
#[cfg(feature = "tls")]
pub(crate) use self::port::free_port;
pub(crate) use self::{
    load::{Load, Report},
    log::{Event, Log},
    proxy::Proxy,
    resp::{Connection, Value},
    server::RedisServer,
    skip::skip,
};
