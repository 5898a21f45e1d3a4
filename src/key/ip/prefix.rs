use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::RangeInclusive,
};

use crate::key::Key;

const V4: RangeInclusive<u8> = 8..=32;
const V6: RangeInclusive<u8> = 32..=128;

/// How many leading bits of an address are counted by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefixes {
    v4: u8,
    v6: u8,
}

impl Prefixes {
    pub(super) const DEFAULT: Self = Self { v4: 32, v6: 64 };

    pub(super) fn with_v4(self, bits: u8) -> Result<Self, PrefixError> {
        if !V4.contains(&bits) {
            return Err(PrefixError { family: "IPv4", bits, bounds: V4 });
        }
        Ok(Self { v4: bits, ..self })
    }

    pub(super) fn with_v6(self, bits: u8) -> Result<Self, PrefixError> {
        if !V6.contains(&bits) {
            return Err(PrefixError { family: "IPv6", bits, bounds: V6 });
        }
        Ok(Self { v6: bits, ..self })
    }

    pub(super) fn key(self, address: IpAddr) -> Key {
        const KIND: &str = "ip";
        match address {
            IpAddr::V4(address) if self.v4 == 32 => dotted(address),
            IpAddr::V4(address) => {
                let mask = u32::MAX << (32 - self.v4);
                let network = Ipv4Addr::from_bits(address.to_bits() & mask);
                Key::new(KIND, format_args!("{network}/{}", self.v4))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX << (128 - self.v6);
                let network = Ipv6Addr::from_bits(address.to_bits() & mask);
                Key::new(KIND, format_args!("{network}/{}", self.v6))
            }
        }
    }
}

/// The key of a whole address: as its `Display` writes it, at a fraction of the cost.
fn dotted(address: Ipv4Addr) -> Key {
    let mut text = *b"ip:255.255.255.255";
    let mut end = "ip:".len();
    for octet in address.octets() {
        if octet >= 100 {
            text[end] = b'0' + octet / 100;
            end += 1;
        }
        if octet >= 10 {
            text[end] = b'0' + octet / 10 % 10;
            end += 1;
        }
        text[end] = b'0' + octet % 10;
        end += 1;
        if let Some(dot) = text.get_mut(end) {
            *dot = b'.';
        }
        end += 1;
    }
    Key::of_plain(&text[..end - 1])
}

/// A prefix length out of bounds; the message names the value and the bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixError {
    family: &'static str,
    bits: u8,
    bounds: RangeInclusive<u8>,
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, bits, bounds } = self;
        let (least, most) = (bounds.start(), bounds.end());
        write!(f, "an {family} prefix of {bits} bits: it must have {least} to {most}")
    }
}

impl std::error::Error for PrefixError {}
