use std::fmt;

use bytes::Bytes;
use http::Response;

use super::Respond;
use crate::{key::RequestHead, limiter::Rejection};

/// Answers by a closure. The body is whatever becomes `Bytes`: a `String`, a `&'static str`, a
/// `Vec<u8>`. With axum's types, build an [`http::Response`] of one of these rather than calling
/// `into_response`.
///
/// ```
/// use http::Response;
/// use tollgate::{MemoryStore, PeerIp, Quota, RateLimitLayer, respond};
///
/// let layer = RateLimitLayer::new(PeerIp, Quota::per_second(5), MemoryStore::new())
///     .respond(respond::from_fn(|rejection, head| {
///         let mut response = Response::new(format!("slow down on {}\n", head.uri().path()));
///         *response.status_mut() = respond::status(rejection);
///         response
///     }));
/// ```
pub fn from_fn<F, T>(respond: F) -> FromFn<F>
where
    F: for<'a> Fn(&'a Rejection, RequestHead<'a>) -> Response<T> + Send + Sync + 'static,
    T: Into<Bytes>,
{
    FromFn(respond)
}

/// A responder made of a closure, by [`from_fn`].
#[derive(Clone, Copy)]
pub struct FromFn<F>(F);

impl<F, T> Respond for FromFn<F>
where
    F: for<'a> Fn(&'a Rejection, RequestHead<'a>) -> Response<T> + Send + Sync + 'static,
    T: Into<Bytes>,
{
    fn respond(&self, rejection: &Rejection, head: RequestHead<'_>) -> Response<Bytes> {
        (self.0)(rejection, head).map(Into::into)
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromFn")
    }
}
