//! Addresses as proxies write them.

use std::net::{IpAddr, Ipv6Addr};

/// What an element says of the host that a proxy got the request from.
pub(super) enum Node {
    Address(IpAddr),
    /// It is there, but says no address.
    Hidden,
}

impl Node {
    pub(super) fn address(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address),
            Self::Hidden => None,
        }
    }
}

impl From<Option<IpAddr>> for Node {
    fn from(address: Option<IpAddr>) -> Self {
        address.map_or(Self::Hidden, Self::Address)
    }
}

/// An address as it is usually written: IPv6 with or without brackets, and maybe a port.
pub(super) fn plain(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let address = match with_port(text) {
        Some((address, port)) if port.is_none_or(is_port) => address,
        _ => parse_v6(text)?.into(),
    };
    canonical(address)
}

/// An address as RFC 7239, section 6, has it: IPv6 in brackets, and maybe a port, which may be hidden.
pub(super) fn node(text: &[u8]) -> Option<IpAddr> {
    let (address, port) = with_port(std::str::from_utf8(text).ok()?)?;
    if !port.is_none_or(|port| is_port(port) || is_obfuscated(port)) {
        return None;
    }
    canonical(address)
}

/// An IPv4 address or an IPv6 address in brackets, and what stands behind the colon after it.
fn with_port(text: &str) -> Option<(IpAddr, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
        return Some((parse_v6(address)?.into(), port));
    }
    let (address, port) = match text.split_once(':') {
        Some((address, port)) => (address, Some(port)),
        None => (text, None),
    };
    Some((IpAddr::V4(address.parse().ok()?), port))
}

/// The zone of an address means something only to the host that wrote it (RFC 4007, section 6).
fn parse_v6(text: &str) -> Option<Ipv6Addr> {
    let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
    if zone.is_empty() || !zone.bytes().all(is_unreserved) {
        return None;
    }
    address.parse().ok()
}

fn canonical(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    (!address.is_unspecified()).then_some(address)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn is_obfuscated(text: &str) -> bool {
    let name = text.strip_prefix('_').unwrap_or_default();
    !name.is_empty() && name.bytes().all(is_unreserved)
}

/// What a zone is made of (RFC 6874, section 2). Anything more, and a list could pass for one.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
