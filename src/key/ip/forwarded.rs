//! The header field `Forwarded` (RFC 7239).
//!
//! A line is taken apart from its right end, because that is what trusted proxies have written: there
//! we are outside of quotes for sure. From the left, a quote that a client opens and does not close
//! would swallow what the proxies after it append.

use std::net::IpAddr;

use http::{HeaderMap, header::FORWARDED};
use smallvec::SmallVec;

use super::host::{self, Node};

/// What the elements of all lines say, from right to left; `None` for a malformed one.
pub(super) fn nodes(headers: &HeaderMap) -> impl Iterator<Item = Option<Node>> {
    let mut lines = headers.get_all(FORWARDED).iter().rev();
    let mut line = None;
    std::iter::from_fn(move || {
        let open = line.take().or_else(|| lines.next().map(|line| line.as_bytes()))?;
        let element;
        (line, element) = split_last(open);
        Some(node(element.trim_ascii()))
    })
}

/// What stands before the last comma outside of quotes, and the element after it.
fn split_last(line: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let mut quoted = false;
    for (at, byte) in line.iter().enumerate().rev() {
        match byte {
            // Of the quotes within quotes, the one that is not escaped has opened them.
            b'"' => quoted = !quoted || line[..at].ends_with(b"\\"),
            b',' if !quoted => return (Some(&line[..at]), &line[at + 1..]),
            _ => {}
        }
    }
    (None, line)
}

/// Who the element is `for`. Its parameters may come in any order, and there may be none.
fn node(element: &[u8]) -> Option<Node> {
    if element.is_empty() {
        return None;
    }
    let mut found = None;
    let mut rest = element;
    loop {
        while let [b';' | b' ' | b'\t', after @ ..] = rest {
            rest = after;
        }
        if rest.is_empty() {
            break;
        }
        let (name, after) = token(rest)?;
        let (value, after) = match after.strip_prefix(b"=")? {
            [b'"', text @ ..] => quoted(text)?,
            text => token(text)?,
        };
        if name.eq_ignore_ascii_case(b"for") && found.replace(value).is_some() {
            return None;
        }
        rest = after.trim_ascii_start();
        if !matches!(rest, [] | [b';', ..]) {
            return None;
        }
    }
    Some(found.and_then(address).into())
}

fn token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !is_token(*byte)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// What stands before the closing quote, escaped as it is, and after it.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some((&text[..at], &text[at + 1..])),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The address in a value, of which a character may be escaped though it need not be.
fn address(value: &[u8]) -> Option<IpAddr> {
    if !value.contains(&b'\\') {
        return host::node(value);
    }
    let mut text = SmallVec::<[u8; 64]>::new();
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        text.push(if *byte == b'\\' { *bytes.next()? } else { *byte });
    }
    host::node(&text)
}

/// RFC 9110, section 5.6.2.
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}
