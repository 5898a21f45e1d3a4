//! Who may ask.

use std::{env, error::Error, fs, net::SocketAddr, path::Path, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN, WWW_AUTHENTICATE},
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use subtle::ConstantTimeEq as _;

const VARIABLE: &str = "TOLLGATE_ADMIN_TOKEN";
/// A token is guessed at the speed of a network.
const MIN_TOKEN: usize = 16;
/// What a program sends with a `POST`: no form of another site can.
const MARK: &str = "x-tollgate-admin";

/// What a request must have.
pub(super) struct Guard {
    token: Option<String>,
    loopback: bool,
}

impl Guard {
    /// For a listener on this address, with the token of this file or of the environment. Beyond
    /// loopback there must be one.
    pub(super) fn new(listening: SocketAddr, file: Option<&Path>) -> Result<Self, Box<dyn Error>> {
        let token = match (env::var(VARIABLE).ok(), file) {
            (None, Some(file)) => Some(
                fs::read_to_string(file)
                    .map_err(|cause| format!("cannot read {}: {cause}", file.display()))?,
            ),
            (token, _) => token,
        };
        let token = token.map(|token| token.trim().to_owned());
        if token.as_ref().is_some_and(|token| token.len() < MIN_TOKEN) {
            return Err(format!("the token must have at least {MIN_TOKEN} characters").into());
        }
        let loopback = listening.ip().to_canonical().is_loopback();
        if token.is_none() && !loopback {
            return Err(format!(
                "{listening} can be reached from other machines, so a token is needed: by \
                 --admin-token-file or admin.token_file, or in {VARIABLE}"
            )
            .into());
        }
        Ok(Self { token, loopback })
    }

    fn refusal(&self, request: &Request) -> Option<(StatusCode, &'static str)> {
        let headers = request.headers();
        let host = request.uri().authority().map(|authority| authority.as_str());
        let host = host.or_else(|| only(headers, HOST.as_str())?.to_str().ok()).unwrap_or_default();
        // A name that somebody has pointed at this machine, so that their page may read this one.
        if self.loopback && !is_local(host) {
            return Some((StatusCode::FORBIDDEN, "the host must be localhost or its address"));
        }
        if self.token.as_ref().is_some_and(|token| !presents(headers, token.as_bytes())) {
            return Some((StatusCode::UNAUTHORIZED, "a token is needed, and this is not it"));
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if !reads && !is_own(headers, host) {
            return Some((
                StatusCode::FORBIDDEN,
                "a change must come from this page, or have the header x-tollgate-admin",
            ));
        }
        None
    }
}

pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match guard.refusal(&request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    let unauthorized = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    if unauthorized {
        // A browser asks for the second, and takes any name.
        for scheme in ["Bearer realm=\"tollgate\"", "Basic realm=\"tollgate\", charset=\"UTF-8\""] {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
        }
    }
    for (name, value) in [
        (
            "content-security-policy",
            "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
        ),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    lines.next().filter(|_| lines.next().is_none())
}

/// Whether this is the machine itself, by any port: a tunnel has one of its own.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    if let Some(inner) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse().is_ok_and(|ip: std::net::Ipv6Addr| ip.is_loopback());
    }
    name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback())
}

/// Whether the request has the token, as a bearer or as the password of a browser. It takes as long for
/// a wrong one as for a right one of its length.
fn presents(headers: &HeaderMap, token: &[u8]) -> bool {
    let value = only(headers, AUTHORIZATION.as_str()).and_then(|value| value.to_str().ok());
    let Some((scheme, rest)) = value.and_then(|value| value.split_once(' ')) else { return false };
    let given = if scheme.eq_ignore_ascii_case("bearer") {
        rest.trim().as_bytes().to_vec()
    } else if scheme.eq_ignore_ascii_case("basic") {
        let pair = BASE64_STANDARD.decode(rest.trim()).unwrap_or_default();
        let colon = pair.iter().position(|byte| *byte == b':');
        colon.map(|colon| pair[colon + 1..].to_vec()).unwrap_or_default()
    } else {
        return false;
    };
    given.ct_eq(token).into()
}

/// Whether a change comes from the page of this listener, or from no page.
fn is_own(headers: &HeaderMap, host: &str) -> bool {
    if headers.contains_key(ORIGIN) {
        let origin = only(headers, ORIGIN.as_str()).and_then(|origin| origin.to_str().ok());
        let rest = origin.and_then(|origin| {
            origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
        });
        return rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host));
    }
    headers.contains_key(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine() {
        for host in
            ["localhost", "LocalHost:1", "127.0.0.1:9090", "127.3.2.1", "[::1]:9090", "[::1]"]
        {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example:9090",
            "192.0.2.1",
            "[::2]",
            "::1",
            "0.0.0.0",
            "localhost:x",
            "2130706433",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
