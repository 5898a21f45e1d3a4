//! JSON Web Tokens (RFC 7519).

mod algorithm;
mod builder;
mod claims;
mod jwks;
mod key;
mod layer;
mod refusal;
mod source;
mod token;

pub use self::{
    algorithm::JwtAlgorithm,
    builder::JwtLayerBuilder,
    claims::{Claims, NamedClaim, claim},
    key::JwtKey,
    layer::JwtLayer,
    source::{JwtKeys, KeyLookup, KeySource, KeySourceError},
};
