//! Layers that find out who calls, outside of the limits that count by it.
//!
//! An [`ApiKeyLayer`] knows API keys, of which the configuration has only digests; a `JwtLayer`, with
//! the feature `jwt`, verifies JSON Web Tokens. What they have verified they put into the extensions
//! of the request: a [`KnownKey`](crate::key::KnownKey) or claims, and a [`Tier`]. What stood there
//! before is removed, so that nothing is trusted that they have not verified.
//!
//! A limit by address goes outside of them, as it bounds what guessing costs; limits by who calls
//! go inside. A request that is turned away never reaches what is inside.
//!
//! # Several of them
//!
//! Each replaces the [`Tier`] by that of the caller it has verified. Where it lets a request pass
//! without one, it leaves a tier that another of these layers, further out, has granted, and removes
//! any other. A layer that grants no tiers to anybody leaves them all alone.

mod api_key;
mod error;
mod future;
mod gate;
#[cfg(feature = "jwt")]
mod jwt;
mod service;

use http::Extensions;

#[cfg(feature = "jwt")]
pub use self::jwt::{
    Claims, JwtAlgorithm, JwtKey, JwtKeys, JwtLayer, JwtLayerBuilder, KeyLookup, KeySource,
    KeySourceError, NamedClaim, claim,
};
pub use self::{
    api_key::{ApiKeyLayer, ApiKeys, ApiKeysBuilder},
    error::AuthError,
    future::AuthFuture,
    service::Auth,
};
use crate::key::Tier;

/// The tier that a layer of this module has granted.
#[derive(Clone)]
struct Granted(Tier);

/// Grants this tier, or none, to a caller who was verified.
fn grant(tier: Option<Tier>, extensions: &mut Extensions) {
    match tier {
        Some(tier) => {
            extensions.insert(Granted(tier.clone()));
            extensions.insert(tier);
        }
        None => {
            extensions.remove::<Tier>();
            extensions.remove::<Granted>();
        }
    }
}

/// Leaves the caller, who was not verified here, what a layer outside has granted.
fn grant_nothing(extensions: &mut Extensions) {
    match extensions.get::<Granted>().cloned() {
        Some(Granted(tier)) => drop(extensions.insert(tier)),
        None => drop(extensions.remove::<Tier>()),
    }
}
