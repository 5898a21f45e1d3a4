use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};

use super::message;
use crate::{key::RequestHead, limiter::Rejection};

const INVALID_ARGUMENT: u16 = 3;
const PERMISSION_DENIED: u16 = 7;
const RESOURCE_EXHAUSTED: u16 = 8;
const UNAVAILABLE: u16 = 14;
const UNAUTHENTICATED: u16 = 16;

pub(super) fn asks(head: RequestHead<'_>) -> bool {
    let content_type = head.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|value| value.starts_with(b"application/grpc"))
}

/// A response of trailers only (gRPC over HTTP/2, "Responses"): a bare 429 would read as
/// UNAVAILABLE, and be tried again at once.
pub(super) fn answer(rejection: &Rejection) -> Response<Bytes> {
    let status = match rejection {
        Rejection::Limited(_) => RESOURCE_EXHAUSTED,
        Rejection::StoreFailed(_) => UNAVAILABLE,
        Rejection::Blocked => PERMISSION_DENIED,
        Rejection::NoKey(error) => match error.status() {
            StatusCode::UNAUTHORIZED => UNAUTHENTICATED,
            StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
            _ => INVALID_ARGUMENT,
        },
    };
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", status.into());
    if let Ok(message) = HeaderValue::from_str(message(rejection)) {
        headers.insert("grpc-message", message);
    }
    if let Rejection::Limited(decision) = rejection {
        // A negative number tells the client not to try again (gRFC A6).
        let wait = decision.retry_after().map(|wait| wait.as_micros().div_ceil(1_000));
        let pushback = wait.map_or(-1, |wait| i32::try_from(wait).unwrap_or(i32::MAX));
        headers.insert("grpc-retry-pushback-ms", pushback.into());
    }
    response
}
