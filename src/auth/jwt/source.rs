use std::{error::Error, fmt, pin::Pin, sync::Arc};

use super::{JwtAlgorithm, JwtKey, algorithm::list, jwks};
use crate::auth::AuthError;

/// Where keys come from that tokens are verified by: [`JwtKeys`] that are known beforehand, or, say,
/// a key set that an issuer publishes.
///
/// It is asked before anything about the token is verified, and anybody can invent names of keys. So
/// a source that fetches keys must bound how often an unknown name makes it do so.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
/// use tollgate::auth::{JwtAlgorithm, JwtKey, KeyLookup, KeySource};
///
/// /// Keys that another task keeps up to date.
/// #[derive(Debug)]
/// struct Rotating(Mutex<HashMap<String, JwtKey>>);
///
/// impl KeySource for Rotating {
///     fn find(&self, _: JwtAlgorithm, kid: Option<&str>) -> KeyLookup {
///         let keys = self.0.lock().unwrap();
///         KeyLookup::Known(kid.and_then(|kid| keys.get(kid)).cloned())
///     }
/// }
/// ```
pub trait KeySource: fmt::Debug + Send + Sync + 'static {
    /// The key of this name that serves this algorithm, one of those that the layer accepts.
    ///
    /// `kid` is what the token says, and nothing to be trusted. A key that is found and does not serve
    /// the algorithm verifies nothing.
    fn find(&self, algorithm: JwtAlgorithm, kid: Option<&str>) -> KeyLookup;
}

/// The answer of a [`KeySource`].
pub enum KeyLookup {
    /// This key, or none: then the token is refused.
    Known(Option<JwtKey>),
    /// It has to be looked up. If the caller goes away, the future is dropped.
    Later(Pin<Box<dyn Future<Output = Result<Option<JwtKey>, KeySourceError>> + Send>>),
}

impl KeyLookup {
    /// The outcome of this future.
    pub fn later<F>(future: F) -> Self
    where
        F: Future<Output = Result<Option<JwtKey>, KeySourceError>> + Send + 'static,
    {
        Self::Later(Box::pin(future))
    }
}

impl fmt::Debug for KeyLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(key) => f.debug_tuple("Known").field(key).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// Why a [`KeySource`] cannot say whether there is a key. This is nobody's fault who calls: requests
/// are answered 503.
#[derive(Debug)]
pub struct KeySourceError(Box<dyn Error + Send + Sync>);

impl KeySourceError {
    /// An error for this reason, which is logged.
    #[must_use]
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for KeySourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for KeySourceError {}

/// Keys that are known beforehand. What is wrong with one is said when the layer is built.
///
/// A token says by its `kid` which of several keys has signed it. One without `kid` is verified by the
/// only key that serves its algorithm, and refused if there are several.
///
/// ```
/// use tollgate::auth::{JwtAlgorithm, JwtKey, JwtKeys};
///
/// let one = JwtKeys::hs256("a secret of at least thirty-two bytes");
/// let rotating = JwtKeys::new([
///     JwtKey::secret(JwtAlgorithm::Hs256, "the new secret, of 32 bytes or more")?.kid("2025-12"),
///     JwtKey::secret(JwtAlgorithm::Hs256, "the old secret, of 32 bytes or more")?.kid("2025-11"),
/// ]);
/// # Ok::<(), tollgate::auth::AuthError>(())
/// ```
#[derive(Clone, Debug)]
pub struct JwtKeys(Result<Arc<[JwtKey]>, AuthError>);

impl JwtKeys {
    /// These keys.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = JwtKey>) -> Self {
        Self(Ok(keys.into_iter().collect()))
    }

    /// A secret of at least 32 bytes, for HS256.
    #[must_use]
    pub fn hs256(secret: impl AsRef<[u8]>) -> Self {
        Self::one(JwtKey::secret(JwtAlgorithm::Hs256, secret))
    }

    /// A public RSA key in PEM, for RS256.
    #[must_use]
    pub fn rs256(pem: impl AsRef<[u8]>) -> Self {
        Self::one(JwtKey::pem(JwtAlgorithm::Rs256, pem))
    }

    /// A public key on P-256 in PEM, for ES256.
    #[must_use]
    pub fn es256(pem: impl AsRef<[u8]>) -> Self {
        Self::one(JwtKey::pem(JwtAlgorithm::Es256, pem))
    }

    /// A public key of Ed25519 in PEM, for `EdDSA`.
    #[must_use]
    pub fn ed25519(pem: impl AsRef<[u8]>) -> Self {
        Self::one(JwtKey::pem(JwtAlgorithm::EdDsa, pem))
    }

    /// The text of a JSON Web Key Set (RFC 7517).
    ///
    /// A key with an `alg` serves that one, and one without all that fit its type, of which
    /// [`algorithms`](super::JwtLayerBuilder::algorithms) may choose. Keys that cannot verify tokens,
    /// as they are for encryption or of another type, are left out.
    #[must_use]
    pub fn jwks(text: impl AsRef<str>) -> Self {
        Self(jwks::keys(text.as_ref()).map(Into::into))
    }

    fn one(key: Result<JwtKey, AuthError>) -> Self {
        Self(key.map(|key| [key].into()))
    }

    /// These keys, if they can be used, there is at least one, and all can be told apart. Layers check
    /// it when they are built; this is for those who make a [`KeySource`] of key sets.
    ///
    /// # Errors
    ///
    /// If they cannot be used; the text says which, and why.
    pub fn check(self) -> Result<Self, AuthError> {
        let keys = self.0?;
        if keys.is_empty() {
            return Err(AuthError::new("there is no key that tokens could be verified by"));
        }
        for (at, key) in keys.iter().enumerate() {
            let same = |other: &&JwtKey| {
                other.name() == key.name() && key.algorithms().any(|one| other.serves(one))
            };
            if let Some(other) = keys[..at].iter().find(same) {
                let both = list(key.algorithms().filter(|one| other.serves(*one)));
                let name = key.name().unwrap_or_default();
                return Err(AuthError::new(format!("two keys for {both} have the name {name:?}")));
            }
        }
        Ok(Self(Ok(keys)))
    }

    /// The algorithms that any of the keys serves.
    pub(super) fn algorithms(&self) -> Box<[JwtAlgorithm]> {
        let served = |one: &JwtAlgorithm| self.keys().iter().any(|key| key.serves(*one));
        JwtAlgorithm::ALL.iter().copied().filter(served).collect()
    }

    fn keys(&self) -> &[JwtKey] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl KeySource for JwtKeys {
    fn find(&self, algorithm: JwtAlgorithm, kid: Option<&str>) -> KeyLookup {
        let serving = || self.keys().iter().filter(move |key| key.serves(algorithm));
        if kid.is_some()
            && let Some(named) = serving().find(|key| key.name() == kid)
        {
            return KeyLookup::Known(Some(named.clone()));
        }
        // A key without a name may have signed any token.
        let mut possible = serving().filter(|key| kid.is_none() || key.name().is_none());
        let only = possible.next().filter(|_| possible.next().is_none());
        KeyLookup::Known(only.cloned())
    }
}
