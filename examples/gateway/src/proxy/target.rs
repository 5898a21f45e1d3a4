//! Which requests are not taken at all, because two servers could read them differently.
//!
//! What is forwarded is, byte for byte, the path and query by which limits and routes were chosen. So a
//! path is refused where a server behind might find another resource by it than is written there: one
//! with `//`, `.` or `..` as a segment, `\`, `;`, an encoded slash, or an encoding of a character that
//! needs none. Some characters may be written in two ways that mean different things to some servers
//! only (`@` and `%40`): paths that no route names need a policy that is no laxer than the others.

use axum::http::{
    HeaderMap, Method, Request, StatusCode, Uri, Version,
    header::{HOST, TRANSFER_ENCODING},
    uri::Authority,
};

use super::answer::Refusal;

/// Why a request is not taken, before anything else reads it.
pub(crate) fn refusal<B>(request: &Request<B>) -> Option<Refusal> {
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        let reason = "this method is not served here";
        return Some(Refusal::new(StatusCode::NOT_IMPLEMENTED, reason));
    }
    let (headers, uri) = (request.headers(), request.uri());
    let checked = framing(headers)
        .and_then(|()| host(request.version(), uri, headers).map(drop))
        .and_then(|()| spelling(uri.path()));
    checked.err().map(Refusal::bad_request)
}

/// The server has read the body by its framing; of codings it knows `chunked` only.
pub(super) fn framing(headers: &HeaderMap) -> Result<(), &'static str> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err("the only transfer coding is chunked, once"),
    }
}

/// The host that a request is for; HTTP/1.0 need not say.
pub(super) fn host<'a>(
    version: Version,
    uri: &'a Uri,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, &'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    let (named, more) = (hosts.next(), hosts.next());
    if more.is_some() {
        return Err("there is more than one Host");
    }
    let named = match named.map(|host| host.to_str()) {
        Some(Ok(host)) => Some(host),
        Some(Err(_)) => return Err("the Host is not one"),
        None => None,
    };
    let target = uri.authority().map(Authority::as_str);
    let host = match (target, named) {
        (Some(target), Some(named)) if !target.eq_ignore_ascii_case(named) => {
            return Err("the target and the Host name different hosts");
        }
        (None, None) | (Some(_), None) if version == Version::HTTP_11 => {
            return Err("there is no Host");
        }
        (Some(host), _) | (None, Some(host)) => host,
        (None, None) => return Ok(None),
    };
    if authority(host).is_some() { Ok(Some(host)) } else { Err("the Host is not one") }
}

/// A host, with a port or without, and nothing else.
pub(super) fn authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let (host, port) = (authority.host(), authority.port_u16());
    let whole = match port {
        Some(_) => text.rsplit_once(':').is_some_and(|(before, _)| before == host),
        None => text == host,
    };
    let plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(&byte));
    (whole && plain && !host.is_empty()).then_some(authority)
}

pub(crate) fn spelling(path: &str) -> Result<(), &'static str> {
    let Some(segments) = path.strip_prefix('/') else {
        return Err("the target is not a path");
    };
    if segments.contains("//") || segments.starts_with('/') {
        return Err("the path has an empty segment");
    }
    if segments.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err("the path has a segment of dots");
    }
    if segments.contains('\\') {
        return Err("the path has a backslash");
    }
    if segments.contains(';') {
        return Err("the path has a semicolon, which is written %3B");
    }
    if !segments.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the path has a character that must be encoded");
    }
    segments.split('%').skip(1).try_for_each(|rest| encoding(rest.as_bytes()))
}

/// Looks at what follows a percent sign.
fn encoding(rest: &[u8]) -> Result<(), &'static str> {
    let digit = |at: usize| rest.get(at).and_then(|digit| char::from(*digit).to_digit(16));
    let (Some(high), Some(low)) = (digit(0), digit(1)) else {
        return Err("the path has a percent sign without two digits");
    };
    match u8::try_from(high * 16 + low).unwrap_or_default() {
        b'/' | b'\\' => Err("the path has an encoded slash"),
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
            Err("the path encodes a character that needs no encoding")
        }
        byte if byte.is_ascii_control() => Err("the path has a control character"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for plain in
            ["/", "/a", "/a/", "/a/b.c/..d", "/%C3%A9", "/a%20b%40c@:+,=", "/%252e/%3B", "/..."]
        {
            assert_eq!(spelling(plain), Ok(()), "{plain}");
        }
        for odd in [
            "//",
            "/a//b",
            "/a//",
            "/.",
            "/./a",
            "/a/..",
            "/a/../b",
            "/%2e%2e/b",
            "/a/%2E",
            "/a%2fb",
            "/a%5Cb",
            "/a\\b",
            "/a;b",
            "/..;/a",
            "/%61",
            "/%7e",
            "/%00",
            "/%0d%0a",
            "/%",
            "/%4",
            "/%zz",
            "/\u{e9}",
            "*",
            "",
        ] {
            assert!(spelling(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn hosts() {
        let asked = |version: Version, target: &str, hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, axum::http::HeaderValue::from_static(host));
            }
            host(version, &target.parse().unwrap(), &headers).map(|host| host.map(str::to_owned))
        };
        let named = |host: &str| Ok(Some(host.to_owned()));
        assert_eq!(asked(Version::HTTP_11, "/", &["a.example:80"]), named("a.example:80"));
        assert_eq!(asked(Version::HTTP_11, "/", &["[::1]:80"]), named("[::1]:80"));
        assert_eq!(asked(Version::HTTP_11, "http://a/", &["A"]), named("a"));
        assert_eq!(asked(Version::HTTP_2, "http://a/", &[]), named("a"));
        assert_eq!(asked(Version::HTTP_10, "/", &[]), Ok(None));
        assert!(asked(Version::HTTP_11, "/", &[]).is_err());
        assert!(asked(Version::HTTP_11, "http://a/", &[]).is_err());
        assert!(asked(Version::HTTP_11, "/", &["a", "a"]).is_err());
        assert!(asked(Version::HTTP_11, "http://a/", &["b"]).is_err());
        assert!(asked(Version::HTTP_2, "http://a/", &["b"]).is_err());
        for odd in ["", "a@b", "a/b", "a b", "a,b", "a:x", "a:", ":80", "a%2fb"] {
            assert!(asked(Version::HTTP_11, "/", &[odd]).is_err(), "{odd}");
        }
    }
}
