//! Fields that belong to one connection, which end here (RFC 9110, section 7.6.1).

use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Version,
    header::{
        CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
        TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
    },
};

use crate::log::X_REQUEST_ID;

const OF_ONE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// By which the gateway knows itself.
const PSEUDONYM: &str = "tollgate";

/// Gateways that a request may come through before it is taken to go round in circles.
const MOST_GATEWAYS: usize = 8;

/// Removes them, and those that `Connection` names.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> =
        tokens(headers, &CONNECTION).filter_map(|token| token.parse().ok()).collect();
    for name in OF_ONE_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}

/// The items of a list in the lines of a field.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

/// The protocol that a request asks to go over to, or a response says it goes over to.
///
/// Not another version of HTTP, nor TLS: requests in those would pass unseen.
pub(super) fn upgrade(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = tokens(headers, &CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"));
    let mut values = headers.get_all(UPGRADE).iter();
    let value = values.next()?;
    let text = value.to_str().ok()?.to_ascii_lowercase();
    let one = values.next().is_none() && !text.contains(',');
    let hidden = ["h2c", "h2", "http", "tls"];
    let open = !hidden.contains(&text.split('/').next().unwrap_or_default().trim());
    (asked && one && open && version == Version::HTTP_11).then(|| value.clone())
}

pub(super) fn takes_trailers(headers: &HeaderMap) -> bool {
    tokens(headers, &TE).any(|token| token.eq_ignore_ascii_case("trailers"))
}

/// Readies the fields of a request that came by one version of HTTP to go on by another, apart from
/// those about its way.
pub(super) fn prepare(
    headers: &mut HeaderMap,
    version: Version,
    next: Version,
    upgrade: Option<&HeaderValue>,
) {
    let trailers = takes_trailers(headers);
    strip(headers);
    // Met here: the server asks for the body when it is wanted.
    headers.remove(EXPECT);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(protocol) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol.clone());
    } else if trailers && next != Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
    }
    if next != Version::HTTP_2 {
        join_cookies(headers);
    }
    let received = match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        _ => "1.1",
    };
    if let Ok(via) = HeaderValue::from_str(&format!("{received} {PSEUDONYM}")) {
        headers.append(VIA, via);
    }
}

/// Whether the length of a body may be told. With one, HTTP/1.1 has no place for trailers, and HTTP/2 has:
/// where they are announced, the body goes on in chunks.
pub(super) fn measure(headers: &mut HeaderMap, empty: bool) -> bool {
    let sized = empty || !headers.contains_key(TRAILER);
    if !sized {
        headers.remove(CONTENT_LENGTH);
    }
    sized
}

/// HTTP/2 may split cookies into several lines, and HTTP/1.1 may not (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        headers.insert(COOKIE, joined);
    }
}

pub(super) fn goes_in_circles(headers: &HeaderMap) -> bool {
    let own = |hop: &&str| hop.split_whitespace().nth(1) == Some(PSEUDONYM);
    tokens(headers, &VIA).filter(own).count() >= MOST_GATEWAYS
}

/// Whether trailers may carry a field. None may change how the message is read.
pub(super) fn may_trail(name: &HeaderName) -> bool {
    const NEVER: [&str; 8] = [
        "authorization",
        "content-encoding",
        "content-range",
        "content-type",
        "cookie",
        "expect",
        "host",
        "trailer",
    ];
    !(OF_ONE_CONNECTION.contains(name)
        || *name == CONTENT_LENGTH
        || *name == X_REQUEST_ID
        || NEVER.contains(&name.as_str())
        || super::forwarded::is_claim(name.as_str()))
}
