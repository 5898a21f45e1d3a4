//! What the upstream is told of the way that a request has come.
//!
//! What a client says about it is dropped. Of the proxies that are trusted, the addresses in
//! `X-Forwarded-For` are believed from the right, up to the first that is none of them: the client. What
//! stands left of that was the client's to write. `Forwarded` is written anew out of the same, for a
//! proxy that keeps one of the two passes the other on as it came.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header::FORWARDED};
use ipnet::IpNet;

use super::target;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Others that tell, to some servers, who asks and for what.
const CLAIMS: [&str; 18] = [
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "client-ip",
    "fastly-client-ip",
    "forwarded",
    "forwarded-for",
    // Read as a setting, the proxy to use, by programs that are started for each request.
    "proxy",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-url",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-rewrite-url",
];

/// The way of a request, as far as it is known.
pub(super) struct Way<'a> {
    /// The client, and the proxies after it, of which the last is the peer.
    chain: Vec<IpAddr>,
    /// What the first of them was asked, by the word of a trusted one.
    told_host: Option<String>,
    told_proto: Option<&'static str>,
    /// What the gateway was asked.
    host: Option<&'a str>,
}

impl<'a> Way<'a> {
    pub(super) fn read(
        headers: &HeaderMap,
        peer: IpAddr,
        host: Option<&'a str>,
        trusted: &[IpNet],
    ) -> Self {
        let peer = peer.to_canonical();
        let mut way = Self { chain: vec![peer], told_host: None, told_proto: None, host };
        if contains(trusted, peer) {
            read_chain(headers, trusted, &mut way.chain);
            let told_host = single(headers, &HOST).filter(|host| target::authority(host).is_some());
            way.told_host = told_host.map(str::to_owned);
            way.told_proto = single(headers, &PROTO).and_then(known_proto);
        }
        way.chain.reverse();
        way
    }

    /// Puts it in place of all that is said about it.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let claims = headers.keys().filter(|name| is_claim(name.as_str()));
        for name in claims.cloned().collect::<Vec<_>>() {
            headers.remove(name);
        }
        let list = self.chain.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        set(headers, FOR, &list);
        set(headers, PROTO, self.told_proto.unwrap_or("http"));
        if let Some(host) = self.told_host.as_deref().or(self.host) {
            set(headers, HOST, host);
        }
        set(headers, FORWARDED, &self.forwarded());
    }

    /// The element of the first proxy says what that was asked, and ours what we were.
    fn forwarded(&self) -> String {
        let mut text = String::new();
        for (at, address) in self.chain.iter().enumerate() {
            let (first, last) = (at == 0, at + 1 == self.chain.len());
            let separator = if first { "" } else { ", " };
            let _ = match address {
                IpAddr::V4(address) => write!(text, "{separator}for={address}"),
                IpAddr::V6(address) => write!(text, "{separator}for=\"[{address}]\""),
            };
            let (host, proto) = if last {
                (self.host, Some("http"))
            } else if first {
                (self.told_host.as_deref(), self.told_proto)
            } else {
                (None, None)
            };
            if let Some(host) = host {
                let _ = write!(text, ";host=\"{host}\"");
            }
            if let Some(proto) = proto {
                let _ = write!(text, ";proto={proto}");
            }
        }
        text
    }
}

/// Follows the list to the left, for as long as a trusted proxy has written what stands there.
fn read_chain(headers: &HeaderMap, trusted: &[IpNet], chain: &mut Vec<IpAddr>) {
    let lines = headers.get_all(FOR).iter().rev();
    for item in lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')) {
        let Some(address) = std::str::from_utf8(item).ok().and_then(address) else { return };
        chain.push(address);
        if !contains(trusted, address) {
            return;
        }
    }
}

fn address(item: &str) -> Option<IpAddr> {
    let item = item.trim();
    let bare = item.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(item);
    let address = bare.parse().or_else(|_| item.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn known_proto(text: &str) -> Option<&'static str> {
    ["http", "https"].into_iter().find(|proto| text.eq_ignore_ascii_case(proto))
}

/// Servers that put fields into variables of the environment take `_` for `-`.
pub(super) fn is_claim(name: &str) -> bool {
    let plain = name.replace('_', "-");
    let framing = plain != name && matches!(&*plain, "content-length" | "transfer-encoding");
    framing || plain.starts_with("x-forwarded") || CLAIMS.contains(&&*plain)
}

fn set(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    // All that comes here was a value, or is made of addresses.
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}
