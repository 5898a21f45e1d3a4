//! How requests are answered that do not reach the service.

mod from_fn;
mod grpc;
mod problem;
mod text;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};

pub use self::{
    from_fn::{FromFn, from_fn},
    problem::Problem,
    text::Text,
};
use crate::{decision::Decision, key::RequestHead, limiter::Rejection};

/// Answers requests that do not reach the service.
///
/// The layer adds to the answer, where they are absent, `Retry-After` and `Cache-Control: no-store`;
/// it sets the fields of its [`HeaderFormat`](crate::HeaderFormat), and puts the [`Rejection`] into
/// the extensions. Closures become responders by [`respond::from_fn`](from_fn).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer requests",
    note = "wrap a closure: `tollgate::respond::from_fn(|rejection, head| http::Response::new(\"…\"))`"
)]
pub trait Respond: Send + Sync + 'static {
    /// The answer to a request with this head. [`status`] gives the status that fits the rejection.
    fn respond(&self, rejection: &Rejection, head: RequestHead<'_>) -> Response<Bytes>;
}

/// The status that fits a rejection: 429 for a denial (RFC 6585 §4), or what a
/// [`Lockout`](crate::Lockout) says where it has locked the key; 503 where the store does not
/// answer, what the key's extractor or the policy says where there is no key, and 403 where the policy
/// denies the caller.
#[must_use]
pub fn status(rejection: &Rejection) -> StatusCode {
    match rejection {
        Rejection::Limited(decision) => decision.status(),
        Rejection::StoreFailed(_) => StatusCode::SERVICE_UNAVAILABLE,
        Rejection::NoKey(error) => error.status(),
        Rejection::Blocked => StatusCode::FORBIDDEN,
    }
}

/// Whether what denies for longest is a lock.
fn is_about_lock(decision: &Decision) -> bool {
    decision.binding().is_some_and(|verdict| verdict.locked().is_some())
}

/// What to tell a client.
fn message(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Limited(decision) if decision.retry_after().is_none() => {
            "the request costs more than its limit can ever grant"
        }
        Rejection::Limited(decision) if is_about_lock(decision) => "locked after too many requests",
        Rejection::Limited(_) => "too many requests",
        Rejection::StoreFailed(_) => "the service cannot check its limits right now",
        // What is wrong with the service is for its log.
        Rejection::NoKey(error) if error.is_setup() => "the service cannot tell who is asking",
        Rejection::NoKey(error) => error.message(),
        Rejection::Blocked => "the caller is not admitted",
    }
}

fn answer(rejection: &Rejection, content_type: HeaderValue, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status(rejection);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
