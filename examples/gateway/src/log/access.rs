//! A line for each request, once it is clear how it is answered.

use std::{borrow::Cow, fmt::Write as _, net::IpAddr, time::Instant};

use axum::http::{Method, Request, Response, Uri};
use tollgate::Rejection;

/// Of a path, what a line shows.
const LONGEST: usize = 1_024;

/// What a line tells of a request. Of headers it tells nothing, and of the target only the path: all
/// that may hold secrets.
pub(super) struct Access {
    method: Method,
    uri: Uri,
    peer: Option<IpAddr>,
    begun: Instant,
}

impl Access {
    #[expect(clippy::disallowed_methods, reason = "what is measured is the time itself")]
    pub(super) fn begin<B>(request: &Request<B>, peer: Option<IpAddr>) -> Self {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        Self { method, uri, peer, begun: Instant::now() }
    }

    /// Says it, in the span of the request, which has the id.
    pub(super) fn log<B>(&self, response: &Response<B>) {
        tracing::info!(
            target: "gateway::request",
            method = %self.method,
            path = %shown(self.uri.path()),
            status = response.status().as_u16(),
            ms = self.begun.elapsed().as_micros() as f64 / 1e3,
            peer = self.peer.map(tracing::field::display),
            outcome = response.extensions().get().map(outcome),
            "answered"
        );
    }
}

/// Why a request came to nothing, if the limiter was why.
fn outcome(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Limited(_) => "limited",
        Rejection::StoreFailed(_) => "store_failed",
        Rejection::NoKey(_) => "no_key",
        Rejection::Blocked => "blocked",
        _ => "rejected",
    }
}

/// A path in visible ASCII: the library lets some other bytes through, with which a client could write
/// lines of its own, or to the terminal.
fn shown(path: &str) -> Cow<'_, str> {
    if path.len() <= LONGEST && path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return path.into();
    }
    let mut shown = String::new();
    for byte in path.bytes() {
        if shown.len() >= LONGEST {
            shown.push_str("...");
            break;
        }
        if byte.is_ascii_graphic() {
            shown.push(char::from(byte));
        } else {
            // Writing to memory does not fail.
            let _ = write!(shown, "%{byte:02X}");
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_in_visible_ascii() {
        for plain in ["", "/", "/a%20b", "*", "/\"'\\"] {
            assert_eq!(shown(plain), plain);
        }
        assert_eq!(shown("/\u{7f}a\n\u{9b}\u{202e}"), "/%7Fa%0A%C2%9B%E2%80%AE");
        let long = shown(&"/a".repeat(40_000)).into_owned();
        assert!(long.len() < 1_040 && long.ends_with("/a..."), "{}", long.len());
    }
}
