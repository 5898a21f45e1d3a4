//! The ids of requests.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher as _,
    net::IpAddr,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LONGEST: usize = 128;

/// The id that a proxy which is trusted has given the request, or else a new one.
pub(super) fn of(headers: &HeaderMap, peer: Option<IpAddr>, trusted: &[IpNet]) -> HeaderValue {
    let believed = peer.is_some_and(|peer| trusted.iter().any(|range| range.contains(&peer)));
    if believed && let Some(given) = given(headers) { given.clone() } else { new() }
}

/// The id that is there, once, if it can be one.
fn given(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(X_REQUEST_ID).iter();
    let id = lines.next().filter(|_| lines.next().is_none())?;
    let fits = (1..=LONGEST).contains(&id.len());
    (fits && id.as_bytes().iter().all(u8::is_ascii_graphic)).then_some(id)
}

/// 128 bits in hexadecimal digits: the number of the request, hashed by keys that the system has given
/// this process at random. Nobody guesses the next one, and no two processes make the same.
fn new() -> HeaderValue {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let [high, low] = &*KEYS;
    // The second key is the first one plus one, so the numbers must differ as well.
    let (high, low) = (high.hash_one(number), low.hash_one((number, "low")));
    let digits = |half: u64| (0..16).map(move |at| DIGITS[(half >> (60 - 4 * at) & 15) as usize]);
    let mut text = [0; 32];
    text.iter_mut().zip(digits(high).chain(digits(low))).for_each(|(to, digit)| *to = digit);
    HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("-"))
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn new_ones_differ() {
        let ids: HashSet<HeaderValue> = (0..10_000).map(|_| new()).collect();
        assert_eq!(ids.len(), 10_000);
        let digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        assert!(ids.iter().all(|id| id.len() == 32 && id.as_bytes().iter().all(digit)));
        // All digits are made of random bits.
        let first: HashSet<u8> = ids.iter().map(|id| id.as_bytes()[0]).collect();
        let last: HashSet<u8> = ids.iter().map(|id| id.as_bytes()[31]).collect();
        assert_eq!((first.len(), last.len()), (16, 16));
    }

    #[test]
    fn only_a_trusted_proxy_names_a_request() {
        let trusted: [IpNet; 2] = ["192.0.2.0/24", "2001:db8::/32"].map(|it| it.parse().unwrap());
        let kept = |lines: &[&[u8]], peer: Option<&str>| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(X_REQUEST_ID, HeaderValue::from_bytes(line).unwrap());
            }
            let id = of(&headers, peer.map(|peer| peer.parse().unwrap()), &trusted);
            lines.first().is_some_and(|line| id.as_bytes() == *line)
        };
        let (longest, proxy) = ([b'x'; 128], Some("192.0.2.7"));
        for id in [&b"7"[..], b"a-b_c.d/e:f=", b"{\"}", &longest] {
            assert!(kept(&[id], proxy), "{id:?}");
            assert!(kept(&[id], Some("2001:db8::1")), "{id:?}");
            assert!(!kept(&[id], Some("198.51.100.1")), "{id:?}");
            assert!(!kept(&[id], None), "{id:?}");
        }
        for bad in [&b""[..], b"a b", b" ", b"a\tb", b"\xc3\xa9", &[b'x'; 129]] {
            assert!(!kept(&[bad], proxy), "{bad:?}");
        }
        assert!(!kept(&[b"one", b"two"], proxy), "nobody knows which");
        assert!(!kept(&[], proxy));
    }
}
