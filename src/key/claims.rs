use std::{fmt, marker::PhantomData};

use super::{Key, KeyError, KeyExtractor, Keys, RequestHead};

const ABSENT: KeyError = KeyError::unauthenticated("the request is not authenticated", "Bearer");

/// Counts by a claim of the caller's token, such as its subject.
///
/// `T` is what an authentication layer *outside* of this one puts into the extensions of a request
/// whose token it has **verified**. Never put claims there that nobody has verified: anybody could
/// then use up the limit of somebody else. A `JwtLayer` is such a layer. To bound what verification costs, put a limit by address
/// outside of it.
///
/// A subject is unique only within its issuer (RFC 7519, section 4.1.2). If tokens of several
/// issuers are accepted, count by both; [`kind`](Claim::kind) tells the two apart:
///
/// ```
/// use http::Request;
/// use tollgate::key::{self, KeyExtractor, RequestHead};
///
/// #[derive(Clone)]
/// struct Claims {
///     iss: String,
///     sub: String,
/// }
///
/// let caller = (
///     key::claim(|c: &Claims| &c.iss).kind("issuer"),
///     key::claim(|c: &Claims| &c.sub),
/// );
///
/// let mut request = Request::new(());
/// assert_eq!(caller.extract(RequestHead::new(&request)).unwrap_err().status(), 401);
///
/// // What the authentication layer does, once it has verified the token.
/// request.extensions_mut().insert(Claims { iss: "accounts".into(), sub: "alice".into() });
/// let keys = caller.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "issuer:accounts,claim:alice");
/// ```
///
/// A request without a `T`, or with an empty claim, is a [missing](KeyError::missing) key with the
/// status 401.
pub const fn claim<T, V, F>(read: F) -> Claim<T, F>
where
    T: Send + Sync + 'static,
    V: fmt::Display + ?Sized,
    F: for<'a> Fn(&'a T) -> &'a V,
    F: Send + Sync + 'static,
{
    Claim { kind: "claim", read, of: PhantomData }
}

/// An extractor made by [`claim`].
pub struct Claim<T, F> {
    kind: &'static str,
    read: F,
    of: PhantomData<fn(&T)>,
}

impl<T, F> Claim<T, F> {
    /// Sets the kind of the keys, `claim` by default.
    ///
    /// Two claims that are counted by need two kinds, or a tenant called `alice` shares the limits
    /// of the user `alice`.
    #[must_use]
    pub const fn kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }
}

impl<T, V, F> KeyExtractor for Claim<T, F>
where
    T: Send + Sync + 'static,
    V: fmt::Display + ?Sized,
    F: for<'a> Fn(&'a T) -> &'a V,
    F: Send + Sync + 'static,
{
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        let claims = head.extension::<T>().ok_or(ABSENT)?;
        Keys::from(Key::new(self.kind, (self.read)(claims))).not_empty(ABSENT)
    }
}

impl<T, F: Clone> Clone for Claim<T, F> {
    fn clone(&self) -> Self {
        Self { kind: self.kind, read: self.read.clone(), of: PhantomData }
    }
}

impl<T, F> fmt::Debug for Claim<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("kind", &self.kind).finish_non_exhaustive()
    }
}
