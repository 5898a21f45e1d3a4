use std::{fmt, sync::Arc};

use jsonwebtoken::{DecodingKey, crypto::rust_crypto};

use super::{
    JwtAlgorithm,
    algorithm::{Family, list},
};
use crate::auth::AuthError;

/// RSA moduli that are accepted, in bits: no fewer than RFC 7518 §3.3 asks for, and no more than
/// bounds what verifying costs.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=4_096;

/// A key that signatures are verified by, and the algorithms that it serves. Clones are cheap.
///
/// A public key never serves HMAC, and a secret nothing else.
#[derive(Clone)]
pub struct JwtKey(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kid: Option<Box<str>>,
    family: Family,
    /// The only algorithm, if the key has one; else all of its family.
    algorithm: Option<JwtAlgorithm>,
    key: DecodingKey,
}

impl JwtKey {
    /// A secret that HMAC signs and verifies by, of at least as many bytes as the hash has: 32, 48
    /// or 64 (RFC 7518 §3.2).
    ///
    /// # Errors
    ///
    /// If `algorithm` is none of HMAC, or the secret is too short or a key in PEM.
    pub fn secret(algorithm: JwtAlgorithm, secret: impl AsRef<[u8]>) -> Result<Self, AuthError> {
        let (secret, least) = (secret.as_ref(), algorithm.least_secret());
        if algorithm.family() != Family::Hmac {
            return Err(AuthError::new(format!(
                "{algorithm} verifies by a public key, not a secret"
            )));
        }
        // A public key is known to everybody.
        if secret.trim_ascii_start().starts_with(b"-----BEGIN") {
            return Err(AuthError::new(format!("the secret for {algorithm} is a key in PEM")));
        }
        if secret.len() < least {
            let len = secret.len();
            return Err(AuthError::new(format!(
                "the secret for {algorithm} has {len} bytes, and needs at least {least}"
            )));
        }
        let key = DecodingKey::from_secret(secret).map_err(|error| bad(algorithm, &error))?;
        Self::checked(Family::Hmac, Some(algorithm), key)
    }

    /// A public key in PEM: `BEGIN PUBLIC KEY`, or `BEGIN RSA PUBLIC KEY`.
    ///
    /// # Errors
    ///
    /// If it is none, or none for this algorithm; if an RSA key has not 2048 to 4096 bits.
    pub fn pem(algorithm: JwtAlgorithm, pem: impl AsRef<[u8]>) -> Result<Self, AuthError> {
        let pem = pem.as_ref();
        let family = algorithm.family();
        if family == Family::Hmac {
            return Err(AuthError::new(format!(
                "{algorithm} verifies by a secret, not a public key"
            )));
        }
        if !pem.windows(15).any(|text| text == b"PUBLIC KEY-----") {
            return Err(AuthError::new(format!("the key for {algorithm} is no public key in PEM")));
        }
        let key = match family {
            Family::Rsa => DecodingKey::from_rsa_pem(pem),
            Family::Ed25519 => DecodingKey::from_ed_pem(pem),
            _ => DecodingKey::from_ec_pem(pem),
        };
        Self::checked(family, Some(algorithm), key.map_err(|error| bad(algorithm, &error))?)
    }

    /// Gives the key a name. It then verifies only tokens whose `kid` is this, or that have none.
    #[must_use]
    pub fn kid(self, kid: impl Into<Box<str>>) -> Self {
        let inner = Arc::unwrap_or_clone(self.0);
        Self(Arc::new(Inner { kid: Some(kid.into()), ..inner }))
    }

    /// The name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.kid.as_deref()
    }

    /// Whether it serves this algorithm.
    #[must_use]
    pub fn serves(&self, algorithm: JwtAlgorithm) -> bool {
        match self.0.algorithm {
            Some(only) => only == algorithm,
            None => self.0.family == algorithm.family(),
        }
    }

    /// The algorithms that it serves.
    pub fn algorithms(&self) -> impl Iterator<Item = JwtAlgorithm> {
        JwtAlgorithm::ALL.iter().copied().filter(|algorithm| self.serves(*algorithm))
    }

    /// A key that can be used, as nothing of it is looked at before a token comes.
    pub(super) fn checked(
        family: Family,
        algorithm: Option<JwtAlgorithm>,
        key: DecodingKey,
    ) -> Result<Self, AuthError> {
        let key = Self(Arc::new(Inner { kid: None, family, algorithm, key }));
        let wrong = |why: &str| {
            AuthError::new(format!("the key for {} cannot be used: {why}", list(key.algorithms())))
        };
        match family {
            Family::Rsa => {
                let bits = key.rsa_bits().ok_or_else(|| wrong("it is no public key of RSA"))?;
                if !RSA_BITS.contains(&bits) {
                    return Err(wrong(&format!(
                        "it has {bits} bits, and needs {} to {}",
                        RSA_BITS.start(),
                        RSA_BITS.end()
                    )));
                }
            }
            Family::Ed25519 if !matches!(key.0.key.try_get_as_bytes(), Ok(bytes) if bytes.len() == 32) =>
            {
                return Err(wrong("it has not 32 bytes"));
            }
            _ => {}
        }
        for algorithm in key.algorithms() {
            (rust_crypto::DEFAULT_PROVIDER.verifier_factory)(
                &algorithm.implementation(),
                &key.0.key,
            )
            .map_err(|error| wrong(&error.to_string()))?;
        }
        Ok(key)
    }

    fn rsa_bits(&self) -> Option<usize> {
        use jsonwebtoken::DecodingKeyKind;

        let modulus = match self.0.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, .. } => n.clone(),
            DecodingKeyKind::SecretOrDer(der) => {
                let utils = &rust_crypto::DEFAULT_PROVIDER.key_utils;
                (utils.rsa_pub_components_from_public_key)(der).ok()?.0
            }
        };
        let start = modulus.iter().position(|byte| *byte != 0)?;
        Some((modulus.len() - start) * 8 - modulus[start].leading_zeros() as usize)
    }

    /// Whether this is the signature of `message`.
    ///
    /// What the process has chosen as its default implementation makes no difference: where other
    /// crates ask for another one, there is no default, and asking for it panics.
    pub(super) fn verifies(
        &self,
        algorithm: JwtAlgorithm,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> bool {
        if !self.serves(algorithm) {
            return false;
        }
        let factory = rust_crypto::DEFAULT_PROVIDER.verifier_factory;
        match factory(&algorithm.implementation(), &self.0.key) {
            Ok(verifier) => verifier.verify(message, signature).is_ok(),
            Err(_) => false,
        }
    }
}

fn bad(algorithm: JwtAlgorithm, error: &jsonwebtoken::errors::Error) -> AuthError {
    AuthError::new(format!("the key for {algorithm} cannot be used: {error}"))
}

/// Shows no secret.
impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtKey")
            .field("kid", &self.0.kid)
            .field("algorithms", &list(self.algorithms()))
            .finish_non_exhaustive()
    }
}
