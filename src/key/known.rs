use std::{fmt, sync::Arc};

use super::{Key, KeyError, KeyExtractor, Keys, RequestHead};

/// The owner of the API key that a request carries, once a layer outside of the limiter knows the key.
///
/// [`ApiKeyLayer`](crate::ApiKeyLayer) puts it into the extensions of a request, and so may a layer of
/// your own that looks keys up elsewhere. [`known_key`] counts by it.
///
/// ```
/// use http::Request;
/// use tollgate::key::KnownKey;
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(KnownKey::new("acme"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownKey(Arc<str>);

impl KnownKey {
    /// A known key of this owner.
    #[must_use]
    pub fn new(owner: impl Into<Arc<str>>) -> Self {
        Self(owner.into())
    }

    /// The name of the owner.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.0
    }
}

/// Counts by the owner of an API key that is known: all keys of one owner together.
///
/// A request without a [`KnownKey`] is a [missing](KeyError::missing) key with the status 401. With
/// [`or`](KeyExtractor::or) it is counted by its address, so that invented keys gain nothing and make
/// no keys in the store. The kind of the keys is `owner`.
///
/// ```
/// use http::Request;
/// use tollgate::key::{self, KeyExtractor, KnownKey, PeerIp, RequestHead};
///
/// let caller = key::known_key().or(PeerIp);
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(KnownKey::new("acme"));
/// let keys = caller.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "owner:acme");
/// ```
#[must_use]
pub const fn known_key() -> Known {
    Known(())
}

/// An extractor made by [`known_key`].
#[derive(Clone, Copy)]
pub struct Known(());

impl Known {
    /// The key of an owner, to look at its limits or to reset them.
    #[must_use]
    pub fn key(&self, owner: &str) -> Key {
        Key::of_text("owner", owner)
    }
}

impl KeyExtractor for Known {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        const ABSENT: KeyError =
            KeyError::unauthenticated("the request carries no known API key", "ApiKey");
        let known = head.extension::<KnownKey>().ok_or(ABSENT)?;
        Keys::from(self.key(known.owner())).not_empty(ABSENT)
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}
