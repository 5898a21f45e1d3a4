use std::fmt;

use http::{Extensions, HeaderMap, Method, Request, Uri, header::AsHeaderName, request::Parts};

use super::{KeyError, Route};

/// What a key may be drawn from: a request without its body.
///
/// This is a view that is cheap to copy. What it hands out lives as long as the request, so that
/// [`from_borrowed`](super::from_borrowed) can pass text on without copying it.
///
/// ```
/// use http::Request;
/// use tollgate::key::RequestHead;
///
/// let request = Request::get("/mail?page=2").header("x-tenant", "acme").body(()).unwrap();
/// let head = RequestHead::new(&request);
/// assert_eq!(head.uri().path(), "/mail");
/// assert_eq!(head.header("X-Tenant"), Some("acme"));
/// ```
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
    pub(super) route: Option<&'a Route<'a>>,
}

impl<'a> RequestHead<'a> {
    /// The head of `request`.
    #[must_use]
    pub fn new<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
            route: None,
        }
    }

    /// The head of a request that was taken apart.
    #[must_use]
    pub const fn from_parts(parts: &'a Parts) -> Self {
        Self {
            method: &parts.method,
            uri: &parts.uri,
            headers: &parts.headers,
            extensions: &parts.extensions,
            route: None,
        }
    }

    /// The same request, on this route.
    pub(crate) const fn on(self, route: &'a Route<'a>) -> Self {
        Self { route: Some(route), ..self }
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// The target, as the client spelled it.
    #[must_use]
    pub const fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// The headers, as the client sent them.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// What outer layers have put into the request.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    /// The text of a header that was sent exactly once, without the white space around it.
    ///
    /// `None` if the header is absent, is not UTF-8, or was sent on several lines: which of them
    /// counts is not agreed upon, so the client could choose. The text may be empty.
    #[must_use]
    pub fn header(&self, name: impl AsHeaderName) -> Option<&'a str> {
        let line = self.line(name).ok()??;
        std::str::from_utf8(line).ok()
    }

    /// What an outer layer has put into the request under the type `T`.
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.extensions.get()
    }

    /// The one line of a header, without the white space around it (RFC 9110, section 5.5).
    pub(super) fn line(&self, name: impl AsHeaderName) -> Result<Option<&'a [u8]>, KeyError> {
        let mut lines = self.headers.get_all(name).iter();
        let first = lines.next();
        if lines.next().is_some() {
            return Err(KeyError::invalid("a header that says who calls was sent more than once"));
        }
        Ok(first.map(|value| value.as_bytes().trim_ascii()))
    }
}

/// Shows the method, the path and the names of the headers: their values and the query may be
/// secret.
impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Names<'a>(&'a HeaderMap);

        impl fmt::Debug for Names<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.0.keys()).finish()
            }
        }

        f.debug_struct("RequestHead")
            .field("method", self.method)
            .field("path", &self.uri.path())
            .field("headers", &Names(self.headers))
            .finish_non_exhaustive()
    }
}
