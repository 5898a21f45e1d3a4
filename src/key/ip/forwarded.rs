use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, HeaderName};

use super::trust::Trusted;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The rightmost address that is not trusted, unless anything but an address comes before it.
pub(super) fn x_forwarded_for(headers: &HeaderMap, trusted: &Trusted) -> Option<IpAddr> {
    let lines = headers.get_all(&X_FORWARDED_FOR).iter().rev();
    for element in lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')) {
        let address = parse(element)?;
        if !trusted.contains(address) {
            return Some(address);
        }
    }
    None
}

/// An address of a host, with or without a port.
fn parse(element: &[u8]) -> Option<IpAddr> {
    let element = std::str::from_utf8(element.trim_ascii()).ok()?;
    let address = if let Some(rest) = element.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        if !port.is_empty() && !is_port(port.strip_prefix(':')?) {
            return None;
        }
        parse_v6(address)?.into()
    } else if let Ok(address) = element.parse() {
        IpAddr::V4(address)
    } else if let Some((address, port)) = element.split_once(':')
        && is_port(port)
    {
        IpAddr::V4(address.parse().ok()?)
    } else {
        parse_v6(element)?.into()
    };
    let address = address.to_canonical();
    (!address.is_unspecified()).then_some(address)
}

/// The zone of an address means something only to the host that wrote it (RFC 4007, section 6).
fn parse_v6(text: &str) -> Option<Ipv6Addr> {
    let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
    if zone.is_empty() {
        return None;
    }
    address.parse().ok()
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}
