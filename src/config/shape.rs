//! What a configuration looks like.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::forms::{KeyConfig, OnFailureConfig, TierConfig, until};

/// Policies as a file or another source describes them, not yet checked.
///
/// Anything that serde reads will do: TOML, JSON, a part of a program's own configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "policies")]
#[non_exhaustive]
pub struct Config {
    /// Where the addresses of clients come from. Default: the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ip: Option<ClientIpConfig>,
    /// Routes that no policy applies to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempt: Vec<String>,
    /// The policies, at least one.
    #[serde(default, rename = "policy", skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyConfig>,
}

/// Where the addresses of clients come from: for the key `ip`, and for lists of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[non_exhaustive]
pub struct ClientIpConfig {
    /// The header in which proxies write them: `x-forwarded-for`, `forwarded`, or one of a single address,
    /// such as `x-real-ip`. Default: none, the peer counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The addresses and ranges of the proxies that are believed; `unix:` is one on a Unix socket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
    /// Instead of that, how many proxies each request comes through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hops: Option<u8>,
    /// Whether requests are rejected if the header does not tell whose they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reject_unknown: bool,
    /// How many leading bits of an IPv4 address are counted by. Default: 32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv4_prefix: Option<u8>,
    /// The same of an IPv6 address. Default: 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_prefix: Option<u8>,
}

/// A [`Policy`](crate::Policy), and the requests that it applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a policy, which is a table")]
#[non_exhaustive]
pub struct PolicyConfig {
    /// Its name.
    pub name: String,
    /// Its [routes](crate::PolicySet): paths, alone or behind methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<String>,
    /// Whether it applies to requests that no route takes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub otherwise: bool,
    /// Whether its states lie in [one slot](crate::PolicyBuilder::one_slot) of a cluster.
    #[serde(default, skip_serializing_if = "is_default")]
    pub one_slot: bool,
    /// What happens to requests while the store does not answer. Default: `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailureConfig>,
    /// What happens to requests without a key: `reject`, `reject:403`, `skip` or `anonymous`.
    /// Default: `reject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_missing_key: Option<String>,
    /// Callers who are not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<CallersConfig>,
    /// Callers who are not admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<CallersConfig>,
    /// Its limits, at least one.
    #[serde(default, rename = "limit", skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitConfig>,
}

/// [`Callers`](crate::Callers) whom a policy knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `addresses` and `keys`")]
#[non_exhaustive]
pub struct CallersConfig {
    /// Their addresses, and ranges of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Their keys, such as `ip:192.0.2.7` or `header.x-tenant:acme`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What draws these keys. Default: all that the limits of the policy count by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A [`Limit`](crate::Limit), and whom it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a limit, which is a table")]
#[non_exhaustive]
pub struct LimitConfig {
    /// Its name.
    pub name: String,
    /// Whom it counts.
    pub key: KeyConfig,
    /// How much is allowed: `20/s`, `5/10s`, `1000/h`; with the algorithm `calendar`, `10000/month`.
    pub quota: String,
    /// Units that may be taken at once. Default: the quantity of the quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// How it counts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub algorithm: AlgorithmConfig,
    /// Units that one request takes. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Whether it only watches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shadow: bool,
    /// Whose buckets it shares. Default: nobody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Units that may be charged ahead. Default: 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lease: u64,
    /// Locks a key for a time, once the limit has denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lockout: Option<LockoutConfig>,
    /// Other quotas for requests of a [`Tier`](crate::Tier).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, TierConfig>,
    /// Other quotas for single keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<OverrideConfig>,
}

/// How a limit counts; see [`Algorithm`](crate::Algorithm).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AlgorithmConfig {
    /// `token_bucket`, the default.
    #[default]
    TokenBucket,
    /// `sliding_log`.
    SlidingLog,
    /// `sliding_counter`.
    SlidingCounter,
    /// `fixed_window`.
    FixedWindow,
    /// `calendar`: the quota is one per `day`, `week` or `month`.
    Calendar,
}

/// A [`Lockout`](crate::Lockout).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `for`")]
#[non_exhaustive]
pub struct LockoutConfig {
    /// Its length: `90s`, `5m`, `1h`, `2d`.
    #[serde(rename = "for")]
    pub length: String,
    /// The denial that sets it. Default: 1, the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The status of answers while the key is locked. Default: 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// Another quota for one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `key` and `quota`")]
#[non_exhaustive]
pub struct OverrideConfig {
    /// The key, such as `ip:192.0.2.7`; where the limit's key is an array, one of as many.
    pub key: KeyConfig,
    /// Its quota, or `unlimited`.
    pub quota: String,
    /// Units that it may take at once. Default: the quantity of the quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// The moment at which this ends (RFC 3339). Default: never.
    #[serde(default, deserialize_with = "until", skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
