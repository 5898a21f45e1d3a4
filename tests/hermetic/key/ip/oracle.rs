//! The same headers, read from left to right and at leisure, as the specifications have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An element: the address that it says, if any, or `None` if it is malformed.
pub(super) type Element = Option<Option<IpAddr>>;

/// The elements of `X-Forwarded-For`, of which only an empty one is malformed.
pub(super) fn list(line: &str) -> Vec<Element> {
    line.split(',')
        .map(|element| match element.trim() {
            "" => None,
            text => Some(address(text, false)),
        })
        .collect()
}

/// The elements of `Forwarded`, or `None` if quotes are malformed: then it depends on the direction
/// where an element begins.
pub(super) fn forwarded(line: &str) -> Option<Vec<Element>> {
    let elements: Vec<Element> = split(line, ',')?.iter().map(|text| element(text)).collect();
    let malformed = elements.iter().any(Option::is_none);
    (!malformed || !line.contains('"')).then_some(elements)
}

fn element(text: &str) -> Element {
    if text.trim().is_empty() {
        return None;
    }
    let mut node = None;
    for pair in split(text, ';')?.iter().map(|pair| pair.trim()).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let value = if value.starts_with('"') { unquote(value)? } else { token(value)? };
        if token(name)?.eq_ignore_ascii_case("for") && node.replace(value).is_some() {
            return None;
        }
    }
    Some(node.and_then(|node| address(&node, true)))
}

/// Splits where the separator stands outside of quotes. `None` if one is not closed.
fn split(text: &str, separator: char) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars();
    let mut quoted = false;
    while let Some(char) = chars.next() {
        if char == separator && !quoted {
            parts.push(String::new());
            continue;
        }
        let part = parts.last_mut()?;
        part.push(char);
        if char == '"' {
            quoted = !quoted;
        } else if char == '\\' && quoted {
            part.push(chars.next()?);
        }
    }
    (!quoted).then_some(parts)
}

fn unquote(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?;
    let mut chars = inner.chars();
    let mut value = String::new();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => value.push(chars.next()?),
            char => value.push(char),
        }
    }
    chars.as_str().is_empty().then_some(value)
}

fn token(text: &str) -> Option<String> {
    let legal = |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char);
    (!text.is_empty() && text.chars().all(legal)).then(|| text.to_owned())
}

/// As `Forwarded` has it, or as is usual elsewhere: IPv6 without brackets, and no hidden ports.
fn address(text: &str, strict: bool) -> Option<IpAddr> {
    let unreserved = |char: char| char.is_ascii_alphanumeric() || "-._~".contains(char);
    let is_port = |port: &str| {
        let number = !port.is_empty() && port.chars().all(|char| char.is_ascii_digit());
        let hidden = port.len() > 1 && port.starts_with('_') && port.chars().all(unreserved);
        (number && port.parse::<u16>().is_ok()) || (strict && hidden)
    };
    let host = match text.rsplit_once(':') {
        Some((host, port)) if is_port(port) && (host.ends_with(']') || !host.contains(':')) => host,
        _ => text,
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let v6 = |text: &str| {
        let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
        let legal = !zone.is_empty() && zone.chars().all(unreserved);
        address.parse::<Ipv6Addr>().ok().filter(|_| legal)
    };
    let address = match bare {
        Some(bare) => v6(bare)?.into(),
        None => match host.parse::<Ipv4Addr>() {
            Ok(address) => address.into(),
            Err(_) if !strict => v6(text)?.into(),
            Err(_) => return None,
        },
    };
    Some(IpAddr::to_canonical(&address)).filter(|address| !address.is_unspecified())
}
