use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::WWW_AUTHENTICATE};

use super::{headers, respond::Respond};
use crate::{
    key::{KeyError, RequestHead},
    limiter::Rejection,
};

/// The answer to a request that is turned away before any limit is asked.
pub(crate) fn turn_away(
    respond: &dyn Respond,
    error: KeyError,
    head: RequestHead<'_>,
) -> Response<Bytes> {
    let rejection = Rejection::NoKey(error);
    let mut response = respond.respond(&rejection, head);
    finish(rejection, None, &mut response);
    response
}

/// Ends an answer that does not come from the service: when to come back, that no cache may keep it,
/// how to authenticate, and for layers outside, what it says. `retry_after` is that of a denial.
pub(super) fn finish(
    rejection: Rejection,
    retry_after: Option<u64>,
    response: &mut Response<Bytes>,
) {
    let unavailable = match &rejection {
        Rejection::Limited(_) | Rejection::Blocked => false,
        Rejection::StoreFailed(_) => true,
        Rejection::NoKey(error) => error.status() == StatusCode::SERVICE_UNAVAILABLE,
    };
    // Short, and not the same for all.
    let retry_after = if unavailable { Some(1 + jitter(2)) } else { retry_after };
    headers::finish(retry_after, response.headers_mut());
    if let Rejection::NoKey(error) = &rejection
        && let Some(challenge) = error.challenge()
        && (response.status() == StatusCode::UNAUTHORIZED
            // RFC 6750 §3.1: a credential that is malformed.
            || response.status() == StatusCode::BAD_REQUEST && !error.is_missing())
    {
        let challenge = HeaderValue::from_static(challenge);
        response.headers_mut().entry(WWW_AUTHENTICATE).or_insert(challenge);
    }
    response.extensions_mut().insert(rejection);
}

/// A random number up to `longest`.
pub(super) fn jitter(longest: u64) -> u64 {
    if longest == 0 { 0 } else { fastrand::u64(0..=longest) }
}
