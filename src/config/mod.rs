//! Policies from a file, with the feature `config`: TOML, or anything else that serde reads.
//!
//! ```toml
//! [client_ip]                    # behind a proxy
//! header = "x-forwarded-for"
//! trusted = ["10.0.0.0/8"]
//!
//! [[policy]]
//! name = "login"
//! routes = ["POST /login"]
//! on_failure = "deny"
//!
//! [[policy.limit]]
//! name = "tries"
//! key = "ip"
//! quota = "5/m"
//! lockout = { for = "1h", status = 403 }
//!
//! [[policy]]
//! name = "api"
//! otherwise = true               # requests that no route takes
//!
//! [[policy.limit]]
//! name = "burst"
//! key = "known_key or ip"
//! quota = "20/s"
//! burst = 40
//! ```
//!
//! ```no_run
//! use tollgate::{
//!     Limiter, MemoryStore, PolicyHandle, RateLimitLayer,
//!     config::{self, Extractors},
//! };
//!
//! let extractors = Extractors::new(); // and what the program counts by itself
//! let policies = PolicyHandle::new(config::from_file("limits.toml", &extractors)?);
//! let layer = RateLimitLayer::with_policies(&policies, &Limiter::new(MemoryStore::new()));
//!
//! // Later, when the file has changed. If it is bad, the policies stay as they are.
//! match config::reload(&policies, "limits.toml", &extractors) {
//!     Ok(changes) => println!("{changes}"),
//!     Err(error) => eprintln!("{error}"),
//! }
//! # Ok::<(), config::ConfigError>(())
//! ```
//!
//! Every field stands in the [guide](crate::docs::configuration).

mod build;
mod callers;
mod changes;
mod error;
mod extractors;
mod forms;
mod limit;
mod place;
mod shape;
mod text;

use std::{fs, path::Path};

pub use self::{
    changes::Changes,
    error::ConfigError,
    extractors::Extractors,
    forms::{BurstConfig, KeyConfig, OnFailureConfig, TierConfig},
    shape::{
        AlgorithmConfig, CallersConfig, ClientIpConfig, Config, LimitConfig, LockoutConfig,
        OverrideConfig, PolicyConfig,
    },
};
use self::{error::Fault, place::Document};
use crate::policy::{Policy, PolicyHandle, PolicySet};

/// The policies of a file in TOML.
///
/// # Errors
///
/// If the file cannot be read, or is no configuration. The message names the file and the line.
pub fn from_file(
    path: impl AsRef<Path>,
    extractors: &Extractors,
) -> Result<PolicySet, ConfigError> {
    let path = path.as_ref();
    let text = fs::read_to_string(path).map_err(|cause| ConfigError::unreadable(&cause));
    text.and_then(|text| from_toml(&text, extractors)).map_err(|error| error.in_file(path))
}

/// The policies of a text in TOML.
///
/// ```
/// use tollgate::config::{self, Extractors};
///
/// let text = r#"
///     [[policy]]
///     name = "api"
///     otherwise = true
///
///     [[policy.limit]]
///     name = "requests"
///     key = "ip"
///     quota = "60/min"
/// "#;
/// let error = config::from_toml(text, &Extractors::new()).unwrap_err();
/// assert_eq!((error.line(), error.column()), (Some(9), Some(13)));
/// ```
///
/// # Errors
///
/// If it is no configuration. The message names the line.
pub fn from_toml(text: &str, extractors: &Extractors) -> Result<PolicySet, ConfigError> {
    let config = Config::from_toml(text)?;
    build::policies(&config, extractors).map_err(|fault| ConfigError::of_fault_in(fault, text))
}

/// Reads a file again, and uses its policies from now on, as [`PolicyHandle::replace`] does. What changed
/// is returned, to be logged.
///
/// # Errors
///
/// As of [`from_file`]. The policies then stay as they are.
pub fn reload(
    policies: &PolicyHandle,
    path: impl AsRef<Path>,
    extractors: &Extractors,
) -> Result<Changes, ConfigError> {
    let new = from_file(path, extractors)?;
    let old = policies.replace(new.clone());
    Ok(Changes::between(&old, &new))
}

impl Config {
    /// What a text in TOML says. Its values are checked when policies are [built](Self::build).
    ///
    /// # Errors
    ///
    /// If it is no TOML, has unknown fields, or lacks some. The message names the line.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError::of_toml(&error, text))
    }

    /// The policies.
    ///
    /// ```
    /// use tollgate::config::{Config, Extractors};
    ///
    /// let config: Config = serde_json::from_str(r#"{ "policy": [{
    ///     "name": "api",
    ///     "otherwise": true,
    ///     "limit": [{ "name": "requests", "key": "ip", "quota": "60/m" }]
    /// }] }"#)?;
    /// let policies = config.build(&Extractors::new())?;
    /// assert_eq!(policies.policy("api").unwrap().limits().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a value cannot be used. The message names the policy, the limit and the field; lines are known
    /// to [`from_toml`] and [`from_file`], and found by [`ConfigError::in_text`].
    pub fn build(&self, extractors: &Extractors) -> Result<PolicySet, ConfigError> {
        build::policies(self, extractors).map_err(|fault| self.error_of(fault))
    }

    /// The policies by themselves, in order, for a program that routes requests by itself. Of routes, only
    /// those parameters are checked that limits count by.
    ///
    /// # Errors
    ///
    /// As of [`build`](Self::build), of everything else.
    pub fn build_policies(&self, extractors: &Extractors) -> Result<Vec<Policy>, ConfigError> {
        build::each(self, extractors).map_err(|fault| self.error_of(fault))
    }

    fn error_of(&self, fault: Fault) -> ConfigError {
        // As TOML, so that values look the same, wherever they came from.
        let text = toml::to_string(self).unwrap_or_default();
        ConfigError::of_fault(fault, Document::parse(&text).ok().as_ref())
    }
}
