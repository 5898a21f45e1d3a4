#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod accel;
pub mod algorithm;
pub mod auth;
#[cfg(feature = "config")]
pub mod config;
mod decision;
#[cfg(doc)]
pub mod docs;
mod failure;
mod http;
pub mod key;
mod limiter;
mod policy;
mod quota;
mod resilience;
pub mod store;
mod telemetry;
mod time;

#[cfg(feature = "jwt")]
pub use self::auth::{Claims, JwtKeys, JwtLayer};
#[cfg(feature = "redis")]
pub use self::store::redis::{RedisStore, RedisStoreBuilder};
pub use self::{
    algorithm::{Algorithm, Calendar},
    auth::{ApiKeyLayer, ApiKeys},
    decision::{Decision, Outcome, Source, Stamp, Standing, Verdict},
    http::{
        HeaderFormat, RateLimit, RateLimitLayer, ResetFormat, ResponseBody, ResponseFuture, respond,
    },
    key::{
        ApiKey, ClientIp, Global, Header, Key, KeyError, KeyExtractor, Keys, PeerIp, RequestHead,
        Tier,
    },
    limiter::{Deciding, Limiter, LimiterBuilder, Rejection, Ruling},
    policy::{
        ByKind, Callers, Limit, Lockout, OnFailure, OnMissingKey, Policy, PolicyBuilder,
        PolicyError, PolicyHandle, PolicySet, PolicySetBuilder,
    },
    quota::{Quota, QuotaError},
    resilience::{Breaker, BreakerState, Failure, Health},
    store::{MemoryStore, Store, StoreError, StoreErrorKind},
    time::{Clock, ManualClock, MonotonicClock, SystemClock, Timestamp},
};
