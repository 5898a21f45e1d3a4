use std::{fmt, str::FromStr};

use jsonwebtoken::Algorithm;

use crate::auth::AuthError;

/// An algorithm that tokens are signed by (RFC 7518 §3.1, RFC 8037 §3.1).
///
/// There is no `none`, and which of them are accepted is never up to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JwtAlgorithm {
    /// HMAC by SHA-256. Whoever can verify can sign, too, as with all of HMAC.
    Hs256,
    /// HMAC by SHA-384.
    Hs384,
    /// HMAC by SHA-512.
    Hs512,
    /// RSA, PKCS#1 v1.5, by SHA-256.
    Rs256,
    /// RSA, PKCS#1 v1.5, by SHA-384.
    Rs384,
    /// RSA, PKCS#1 v1.5, by SHA-512.
    Rs512,
    /// RSA, PSS, by SHA-256.
    Ps256,
    /// RSA, PSS, by SHA-384.
    Ps384,
    /// RSA, PSS, by SHA-512.
    Ps512,
    /// ECDSA on P-256, by SHA-256.
    Es256,
    /// ECDSA on P-384, by SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

/// Kinds of keys. No key is of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Hmac,
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl JwtAlgorithm {
    /// All algorithms.
    pub const ALL: &[Self] = &[
        Self::Hs256,
        Self::Hs384,
        Self::Hs512,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// The name, as it stands in tokens and key sets: `RS256`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|algorithm| algorithm.name() == name)
    }

    pub(super) const fn family(self) -> Family {
        match self {
            Self::Hs256 | Self::Hs384 | Self::Hs512 => Family::Hmac,
            Self::Rs256 | Self::Rs384 | Self::Rs512 => Family::Rsa,
            Self::Ps256 | Self::Ps384 | Self::Ps512 => Family::Rsa,
            Self::Es256 => Family::P256,
            Self::Es384 => Family::P384,
            Self::EdDsa => Family::Ed25519,
        }
    }

    pub(super) const fn implementation(self) -> Algorithm {
        match self {
            Self::Hs256 => Algorithm::HS256,
            Self::Hs384 => Algorithm::HS384,
            Self::Hs512 => Algorithm::HS512,
            Self::Rs256 => Algorithm::RS256,
            Self::Rs384 => Algorithm::RS384,
            Self::Rs512 => Algorithm::RS512,
            Self::Ps256 => Algorithm::PS256,
            Self::Ps384 => Algorithm::PS384,
            Self::Ps512 => Algorithm::PS512,
            Self::Es256 => Algorithm::ES256,
            Self::Es384 => Algorithm::ES384,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }

    /// The least bytes of an HMAC secret: as many as the hash has (RFC 7518 §3.2).
    pub(super) const fn least_secret(self) -> usize {
        match self {
            Self::Hs384 => 48,
            Self::Hs512 => 64,
            _ => 32,
        }
    }
}

impl fmt::Display for JwtAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for JwtAlgorithm {
    type Err = AuthError;

    fn from_str(name: &str) -> Result<Self, AuthError> {
        Self::named(name)
            .ok_or_else(|| AuthError::new(format!("{name:?} is no algorithm for tokens")))
    }
}

/// `HS256, RS256`.
pub(super) fn list(algorithms: impl IntoIterator<Item = JwtAlgorithm>) -> String {
    let names: Vec<_> = algorithms.into_iter().map(JwtAlgorithm::name).collect();
    names.join(", ")
}
