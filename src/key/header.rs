use http::{HeaderName, header::InvalidHeaderName};

use super::{
    Key, KeyError, KeyExtractor, Keys, RequestHead,
    credential::Credential,
    secret::{self, HashKey},
};

/// Counts by the value of a header, as it was sent, but for the white space around it.
///
/// A client can send what it likes, and gets a fresh limit for every value. So count by a header
/// that a gateway in front sets, not the client. The value becomes part of a name in the store;
/// for one that is secret, there is [`ApiKey`].
///
/// The kind of the keys is `header.` and the name of the header. An absent or empty header is
/// a [missing](KeyError::missing) key; one that is not UTF-8 or was sent on several lines is an
/// [invalid](KeyError::invalid) one.
///
/// ```
/// use http::Request;
/// use tollgate::key::{Header, KeyExtractor, RequestHead};
///
/// let tenant = Header::new("X-Tenant")?;
///
/// let request = Request::get("/").header("x-tenant", "acme").body(()).unwrap();
/// let keys = tenant.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "header.x-tenant:acme");
/// # Ok::<(), http::header::InvalidHeaderName>(())
/// ```
#[derive(Clone, Debug)]
pub struct Header {
    name: HeaderName,
    kind: Box<str>,
}

impl Header {
    /// Counts by the header of this name, in upper or lower case.
    ///
    /// # Errors
    ///
    /// If `name` is not a header name.
    pub fn new(name: &str) -> Result<Self, InvalidHeaderName> {
        name.parse().map(Self::of)
    }

    /// Counts by the header of this name, a literal in upper or lower case.
    ///
    /// # Panics
    ///
    /// If `name` is not a header name.
    #[must_use]
    #[track_caller]
    pub fn from_static(name: &'static str) -> Self {
        Self::of(literal(name))
    }

    /// The key of a value, to look at its limits or to reset them.
    #[must_use]
    pub fn key(&self, value: &str) -> Key {
        Key::of_text(&self.kind, value)
    }

    fn of(name: HeaderName) -> Self {
        let kind = format!("header.{name}").into_boxed_str();
        Self { name, kind }
    }
}

impl KeyExtractor for Header {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        const ABSENT: KeyError =
            KeyError::missing("the request lacks the header that says who calls");
        let line = head.line(&self.name)?.ok_or(ABSENT)?;
        let value = std::str::from_utf8(line)
            .map_err(|_| KeyError::invalid("the header that says who calls is not text"))?;
        Keys::from(self.key(value)).not_empty(ABSENT)
    }
}

/// Counts by an API key or another secret that the caller presents.
///
/// The secret itself never gets into a [`Key`], and so neither into the store nor into its logs and
/// dumps: only 128 bits of its BLAKE3 hash do. The same secret is the same key, whichever way
/// it was sent.
///
/// Random secrets make an unbounded number of keys. If the secrets are known here, count by
/// [`known_key`](super::known_key), inside of an [`ApiKeyLayer`](crate::ApiKeyLayer); else limit by
/// address as well.
///
/// A request without a secret is a [missing](KeyError::missing) key with the status 401. A header
/// on several lines is an [invalid](KeyError::invalid) one.
///
/// ```
/// use http::Request;
/// use tollgate::key::{ApiKey, KeyExtractor, RequestHead};
///
/// let bearer = Request::get("/").header("authorization", "bearer  s3cret").body(()).unwrap();
/// let header = Request::get("/").header("x-api-key", "s3cret").body(()).unwrap();
///
/// let keys = ApiKey::bearer().extract(RequestHead::new(&bearer)).unwrap();
/// assert_eq!(ApiKey::header("x-api-key").extract(RequestHead::new(&header)).unwrap(), keys);
/// assert!(!keys[0].as_str().contains("s3cret"));
/// ```
#[derive(Clone, Debug)]
pub struct ApiKey {
    credential: Credential,
    hash_key: Option<HashKey>,
}

impl ApiKey {
    /// Counts by the whole value of a header, named by a literal in upper or lower case.
    ///
    /// For `Authorization` use [`bearer`](Self::bearer): the value of that header begins with
    /// a scheme, which can be spelled in many ways.
    ///
    /// # Panics
    ///
    /// If `name` is not a header name.
    #[must_use]
    #[track_caller]
    pub fn header(name: &'static str) -> Self {
        Self { credential: Credential::Header(literal(name)), hash_key: None }
    }

    /// Counts by the whole value of a header, named in upper or lower case.
    ///
    /// # Errors
    ///
    /// If `name` is not a header name.
    pub fn try_header(name: &str) -> Result<Self, InvalidHeaderName> {
        Ok(Self { credential: Credential::Header(name.parse()?), hash_key: None })
    }

    /// Counts by the token in `Authorization: Bearer` (RFC 6750, section 2.1).
    ///
    /// How the scheme is spelled or spaced makes no difference. Another scheme is
    /// a [missing](KeyError::missing) key, and a token with anything but visible ASCII inside is
    /// an [invalid](KeyError::invalid) one.
    #[must_use]
    pub const fn bearer() -> Self {
        Self { credential: Credential::Bearer, hash_key: None }
    }

    /// Hashes with a key, so that whoever reads the store cannot find a guessable secret by trial.
    ///
    /// All instances that share limits need the same `secret`; another one gives every caller fresh
    /// limits.
    #[must_use]
    pub fn hash_key(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.hash_key = Some(HashKey::new(secret.as_ref()));
        self
    }

    /// The key of an API key, to look at its limits or to reset them.
    #[must_use]
    pub fn key(&self, secret: impl AsRef<[u8]>) -> Key {
        let digest = match &self.hash_key {
            Some(key) => key.digest(secret.as_ref()),
            None => secret::digest(secret.as_ref()),
        };
        Key::of_text("apikey", digest.as_str())
    }
}

impl KeyExtractor for ApiKey {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        let secret = self.credential.read(head)?.ok_or_else(|| self.credential.absent())?;
        Ok(self.key(secret).into())
    }
}

#[track_caller]
fn literal(name: &'static str) -> HeaderName {
    match name.parse() {
        Ok(name) => name,
        Err(error) => panic!("{error}: {name:?}"),
    }
}
