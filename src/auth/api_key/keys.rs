use std::{fmt, sync::Arc};

use hashbrown::HashMap;

use crate::{
    auth::AuthError,
    key::{KnownKey, Tier, known_digest},
};

/// Longer ones are unknown, without a look at them.
const MAX_BYTES: usize = 1_024;

type Digest = [u8; 32];

/// The API keys that are known, by their digests. Clones are cheap.
///
/// What a configuration has are digests, so whoever reads it cannot call. A digest protects only a key
/// that nobody can guess: make keys of at least 128 random bits.
///
/// Keys are looked up by their digests, so how long that takes says nothing about the keys that are
/// known.
///
/// ```
/// use tollgate::{ApiKeys, Tier};
///
/// // What the operator does, once for each key.
/// let digest = ApiKeys::digest("9b0a5c1e7f");
///
/// let keys = ApiKeys::builder()
///     .key(&digest, "acme", Tier::new("pro"))
///     .key("3a".repeat(32), "test machines", None)
///     .build()?;
/// assert_eq!(keys.len(), 2);
/// # Ok::<(), tollgate::auth::AuthError>(())
/// ```
#[derive(Clone)]
pub struct ApiKeys(Arc<HashMap<Digest, Caller, foldhash::fast::RandomState>>);

/// Who calls by a key.
#[derive(Clone, Debug)]
pub struct Caller {
    pub(super) known: KnownKey,
    pub(super) tier: Option<Tier>,
}

impl ApiKeys {
    /// The digest of an API key: 64 hexadecimal digits, of BLAKE3.
    #[must_use]
    pub fn digest(secret: impl AsRef<[u8]>) -> String {
        known_digest(secret.as_ref()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Begins a set of keys.
    pub fn builder() -> ApiKeysBuilder {
        ApiKeysBuilder { keys: Vec::new() }
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn find(&self, secret: &[u8]) -> Option<&Caller> {
        if secret.len() > MAX_BYTES {
            return None;
        }
        self.0.get(&known_digest(secret))
    }
}

/// Shows who calls, and no digest.
impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut owners: Vec<_> = self.0.values().map(|caller| caller.known.owner()).collect();
        owners.sort_unstable();
        f.debug_tuple("ApiKeys").field(&owners).finish()
    }
}

/// Builds [`ApiKeys`].
#[derive(Debug)]
#[must_use]
pub struct ApiKeysBuilder {
    keys: Vec<(String, Arc<str>, Option<Tier>)>,
}

impl ApiKeysBuilder {
    /// Adds a key, by its [digest](ApiKeys::digest), with the name of its owner and the tier that the
    /// owner has, if any. An owner may have several keys, which count together.
    pub fn key(
        mut self,
        digest: impl Into<String>,
        owner: impl Into<Arc<str>>,
        tier: impl Into<Option<Tier>>,
    ) -> Self {
        self.keys.push((digest.into(), owner.into(), tier.into()));
        self
    }

    /// The keys.
    ///
    /// # Errors
    ///
    /// If a digest is none, or there twice, or an owner has no name.
    pub fn build(self) -> Result<ApiKeys, AuthError> {
        let mut keys = HashMap::default();
        for (text, owner, tier) in self.keys {
            let digest = parse(&text).ok_or_else(|| {
                // It may be the key itself, by mistake.
                let len = text.len();
                AuthError::new(format!(
                    "what stands for the API key of {owner:?}, {len} bytes long, is no digest: \
                     `ApiKeys::digest` makes them, of 64 hexadecimal digits"
                ))
            })?;
            if owner.is_empty() {
                return Err(AuthError::new(format!(
                    "the API key with the digest {text} has no owner"
                )));
            }
            let caller = Caller { known: KnownKey::new(Arc::clone(&owner)), tier };
            if let Some(other) = keys.insert(digest, caller) {
                let other = other.known;
                let other = other.owner();
                return Err(AuthError::new(format!("{other:?} and {owner:?} have one API key")));
            }
        }
        Ok(ApiKeys(Arc::new(keys)))
    }
}

/// 64 hexadecimal digits, in upper or lower case.
fn parse(text: &str) -> Option<Digest> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let mut digest = Digest::default();
    if text.len() != 2 * digest.len() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::try_from(digit(&pair[0])? * 16 + digit(&pair[1])?).ok()?;
    }
    Some(digest)
}
