//! What clients are told when the upstream's answer is not theirs to see, or there is none.

use axum::{
    body::Body,
    http::{
        HeaderValue, Response, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
};

/// Why a request gets no answer from the upstream. The texts name nothing that is behind the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    reason: &'static str,
}

impl Refusal {
    pub(super) const UNREACHABLE: Self =
        Self::new(StatusCode::BAD_GATEWAY, "the upstream cannot be reached");
    pub(super) const BROKEN: Self =
        Self::new(StatusCode::BAD_GATEWAY, "the upstream broke off before it answered");
    pub(super) const SENSELESS: Self =
        Self::new(StatusCode::BAD_GATEWAY, "the upstream's answer cannot be passed on");
    pub(super) const UNCONNECTED: Self =
        Self::new(StatusCode::GATEWAY_TIMEOUT, "the upstream cannot be reached in time");
    pub(super) const SILENT: Self =
        Self::new(StatusCode::GATEWAY_TIMEOUT, "the upstream does not answer in time");
    pub(super) const TOO_LARGE: Self =
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than is allowed here");
    pub(super) const SLOW: Self =
        Self::new(StatusCode::REQUEST_TIMEOUT, "the body does not come in time");
    pub(super) const UNREADABLE: Self =
        Self::new(StatusCode::BAD_REQUEST, "the body cannot be read");
    pub(super) const LOOP: Self =
        Self::new(StatusCode::LOOP_DETECTED, "the request has come through here too often");

    pub(super) const fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason }
    }

    pub(super) const fn bad_request(reason: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    /// Whether it is the upstream's fault.
    pub(super) fn is_failure(self) -> bool {
        self.status.is_server_error() && self != Self::LOOP
    }

    /// What the client is told, in short.
    pub(crate) fn told(self) -> String {
        format!("{}: {}", self.status.as_u16(), self.reason)
    }

    pub(crate) fn response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(format!("{}\n", self.reason)));
        *response.status_mut() = self.status;
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
