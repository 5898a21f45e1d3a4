use std::fmt;

use super::{Key, KeyError, KeyExtractor, Keys, RequestHead};

const ABSENT: KeyError = KeyError::missing("the request does not say who calls");

/// An extractor from a closure.
///
/// The closure returns anything that becomes a [`Key`]: a string or a number (of the kind `id`), or
/// a key with a kind of its own; or a `Vec` of them, all of which are counted. `None` is
/// a [missing](KeyError::missing) key, and so is an empty string, or none at all: callers that do not
/// say who they are never share a limit by accident. An empty string among others is
/// an [invalid](KeyError::invalid) key.
///
/// ```
/// use http::Request;
/// use tollgate::key::{self, Key, KeyExtractor, RequestHead};
///
/// let tenant = key::from_fn(|head| {
///     let name = head.header("x-tenant")?;
///     Some(Key::new("tenant", name.to_ascii_lowercase()))
/// });
///
/// let request = Request::get("/").header("x-tenant", "Acme").body(()).unwrap();
/// let keys = tenant.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "tenant:acme");
/// ```
pub const fn from_fn<F, K>(f: F) -> FromFn<F>
where
    F: for<'a> Fn(RequestHead<'a>) -> Option<K>,
    F: Send + Sync + 'static,
    K: Into<Keys>,
{
    FromFn(f)
}

/// An extractor from a closure that finds its text in the request, without copying it.
///
/// The key is of the kind `id`. `None` is a [missing](KeyError::missing) key, and so is an empty
/// string.
///
/// ```
/// use http::Request;
/// use tollgate::key::{self, KeyExtractor, RequestHead};
///
/// let tenant = key::from_borrowed(|head| head.header("x-tenant"));
///
/// let request = Request::get("/").header("x-tenant", "acme").body(()).unwrap();
/// let keys = tenant.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "id:acme");
/// ```
pub const fn from_borrowed<F>(f: F) -> FromBorrowed<F>
where
    F: for<'a> Fn(RequestHead<'a>) -> Option<&'a str>,
    F: Send + Sync + 'static,
{
    FromBorrowed(f)
}

/// An extractor made by [`from_fn`].
#[derive(Clone, Copy)]
pub struct FromFn<F>(F);

impl<F, K> KeyExtractor for FromFn<F>
where
    F: for<'a> Fn(RequestHead<'a>) -> Option<K>,
    F: Send + Sync + 'static,
    K: Into<Keys>,
{
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        (self.0)(head).ok_or(ABSENT)?.into().not_empty(ABSENT)
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}

/// An extractor made by [`from_borrowed`].
#[derive(Clone, Copy)]
pub struct FromBorrowed<F>(F);

impl<F> KeyExtractor for FromBorrowed<F>
where
    F: for<'a> Fn(RequestHead<'a>) -> Option<&'a str>,
    F: Send + Sync + 'static,
{
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        Keys::from(Key::from((self.0)(head).ok_or(ABSENT)?)).not_empty(ABSENT)
    }
}

impl<F> fmt::Debug for FromBorrowed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromBorrowed").finish_non_exhaustive()
    }
}
