//! Whom a limit counts: keys, and the extractors that draw them from requests.

mod claims;
mod compose;
mod credential;
mod error;
mod from_fn;
mod head;
mod header;
mod ip;
mod keys;
mod known;
mod route;
mod secret;
mod tier;

use std::{fmt, fmt::Write as _, sync::Arc};

use smallvec::SmallVec;

use self::secret::digest;
pub use self::{
    claims::{Claim, claim},
    compose::{Global, Or},
    error::KeyError,
    from_fn::{FromBorrowed, FromFn, from_borrowed, from_fn},
    head::RequestHead,
    header::{ApiKey, Header},
    ip::{ClientIp, PeerIp, PrefixError, TrustError},
    keys::Keys,
    known::{Known, KnownKey, known_key},
    route::{PathParam, RouteTemplate, path_param, route},
    tier::Tier,
};
pub(crate) use self::{credential::Credential, ip::network, route::Route, secret::known_digest};

/// The longest identity that is kept as it is; a longer one is replaced by its digest.
const MAX_IDENTITY: usize = 128;

/// Whom a limit counts: an identity and the kind that it is of.
///
/// The kind keeps identities apart that look alike: the API key `1.2.3.4` never meets that address.
/// Keys reach the store as part of a name, so anything unusual in an identity is escaped, and
/// an identity of more than 128 bytes is replaced by a digest of it. An identity that is a secret
/// should be hashed by the extractor, as [`ApiKey`] does.
///
/// ```
/// use tollgate::Key;
///
/// assert_eq!(Key::new("tenant", "acme").as_str(), "tenant:acme");
/// assert_eq!(Key::from("user:42").as_str(), "id:user:42");
/// assert_eq!(Key::from(7), Key::new("id", 7));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(SmallVec<[u8; 56]>);

impl Key {
    /// The key of `identity`, among identities of this `kind`.
    ///
    /// A kind is a short name such as `tenant`. Anything but ASCII letters, digits, `-`, `_` and `.`
    /// in it is escaped.
    #[must_use]
    pub fn new(kind: &str, identity: impl fmt::Display) -> Self {
        Self::collect(kind, |key| write!(key, "{identity}"))
    }

    /// The key of an identity that is there as text: spares the way through `Display`.
    fn of_text(kind: &str, identity: &str) -> Self {
        Self::collect(kind, |key| key.write_str(identity))
    }

    /// The key that a store sees as `text`: a kind, a colon, and an identity in which nothing needs to
    /// be escaped.
    fn of_plain(text: &[u8]) -> Self {
        Self(SmallVec::from_slice(text))
    }

    fn collect(kind: &str, write: impl FnOnce(&mut Identity<'_>) -> fmt::Result) -> Self {
        let mut key = Self(SmallVec::new());
        for byte in kind.bytes() {
            let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            push(&mut key.0, byte, plain);
        }
        key.0.push(b':');
        let start = key.0.len();
        let mut collect = Identity { key: &mut key.0, start, long: None };
        // Writing to memory does not fail; an identity whose own `Display` fails is cut there.
        let _ = write(&mut collect);
        collect.finish();
        key
    }

    /// The key in the form in which stores see it: kind, colon, identity.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII was ever pushed.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether its identity is empty.
    fn is_empty(&self) -> bool {
        matches!(self.0.split_last(), Some((b':', kind)) if !kind.contains(&b':'))
    }

    /// The key of this one and `other` at once, in this order: that of a limit which counts by a tuple of
    /// extractors.
    ///
    /// ```
    /// use tollgate::{Key, Limit, Limiter, MemoryStore, PeerIp, Policy, Quota, key};
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = Limiter::new(MemoryStore::new());
    /// let tries = Limit::new("tries", Quota::per_minute(5));
    /// let login = Policy::new("login").limit((PeerIp, key::path_param("user")), tries).build()?;
    /// let key = PeerIp::key("192.0.2.7".parse()?).and(Key::new("param.user", "bob"));
    /// assert_eq!(key.as_str(), "ip:192.0.2.7,param.user:bob");
    /// if let Some(tries) = login.limit("tries") {
    ///     limiter.reset(tries, key).await?;
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.join(&other.into());
        self
    }

    /// The key of several at once: equal only if all parts are.
    pub(crate) fn join(&mut self, other: &Key) {
        self.0.push(b',');
        self.0.extend_from_slice(&other.0);
    }
}

/// Shows the kind, and of the identity only a digest: keys may be personal data.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.as_str().split(':').next().unwrap_or_default();
        let mark = digest(&self.0);
        write!(f, "Key({kind}:#{})", &mark.as_str()[..8])
    }
}

impl From<&str> for Key {
    fn from(identity: &str) -> Self {
        Self::of_text("id", identity)
    }
}

impl From<String> for Key {
    fn from(identity: String) -> Self {
        Self::of_text("id", &identity)
    }
}

impl From<&String> for Key {
    fn from(identity: &String) -> Self {
        Self::of_text("id", identity)
    }
}

macro_rules! from_integers {
    ($($integer:ty)+) => {$(
        impl From<$integer> for Key {
            fn from(identity: $integer) -> Self {
                Self::of_text("id", itoa::Buffer::new().format(identity))
            }
        }
    )+};
}

from_integers!(u32 u64 i32 i64);

/// Collects an identity as its `Display` writes it, in one piece or in many.
struct Identity<'a> {
    key: &'a mut SmallVec<[u8; 56]>,
    start: usize,
    long: Option<Box<blake3::Hasher>>,
}

impl Identity<'_> {
    /// Escapes what was collected, so that no identity breaks out of its place in a longer name.
    fn finish(self) {
        if let Some(hasher) = self.long {
            self.key.truncate(self.start);
            self.key.push(b'#');
            self.key.extend_from_slice(secret::hex(&hasher).as_str().as_bytes());
            return;
        }
        if self.key[self.start..].iter().all(|byte| is_plain(*byte)) {
            return;
        }
        let raw = SmallVec::<[u8; MAX_IDENTITY]>::from_slice(&self.key[self.start..]);
        self.key.truncate(self.start);
        for byte in raw {
            push(self.key, byte, is_plain(byte));
        }
    }
}

impl fmt::Write for Identity<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Some(hasher) = &mut self.long {
            hasher.update(text.as_bytes());
        } else if self.key.len() - self.start + text.len() <= MAX_IDENTITY {
            self.key.extend_from_slice(text.as_bytes());
        } else {
            let mut hasher = Box::new(secret::hasher());
            hasher.update(&self.key[self.start..]).update(text.as_bytes());
            self.long = Some(hasher);
        }
        Ok(())
    }
}

/// Appends a byte, escaped unless it is plain.
fn push(text: &mut SmallVec<[u8; 56]>, byte: u8, plain: bool) {
    if plain {
        text.push(byte);
    } else {
        let [high, low] = secret::hex_byte(byte);
        text.extend_from_slice(&[b'%', high, low]);
    }
}

/// `#` marks a digest; braces, the comma and the percent sign belong to the names of keys.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'#' | b'{' | b'}' | b',' | b'%')
}

/// Draws a key from a request.
///
/// Closures become extractors by [`key::from_fn`](from_fn):
///
/// ```
/// use tollgate::{Quota, RateLimitLayer, MemoryStore, key};
///
/// let tenant = key::from_fn(|head| head.header("x-tenant").map(str::to_ascii_lowercase));
/// let layer = RateLimitLayer::new(tenant, Quota::per_second(50), MemoryStore::new());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not draw a key from a request",
    note = "wrap a closure: `tollgate::key::from_fn(|head| head.header(\"x-tenant\").map(String::from))`"
)]
pub trait KeyExtractor: Send + Sync + 'static {
    /// The key of this request, or the [`Keys`] that it is about.
    ///
    /// # Errors
    ///
    /// If the request does not say whom to count; the policy decides what then happens.
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError>;

    /// This extractor, or `other` where this one finds nothing: an API key, else the address.
    ///
    /// Only what is [absent](KeyError::missing) is passed on to `other`. What is there but
    /// malformed is an error still, or a client could choose which of the two counts it.
    fn or<E: KeyExtractor>(self, other: E) -> Or<Self, E>
    where
        Self: Sized,
    {
        Or::new(self, other)
    }
}

impl<E: KeyExtractor + ?Sized> KeyExtractor for Box<E> {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        (**self).extract(head)
    }
}

impl<E: KeyExtractor + ?Sized> KeyExtractor for Arc<E> {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        (**self).extract(head)
    }
}
