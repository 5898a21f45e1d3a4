use std::{fmt, net::IpAddr, ops::RangeInclusive};

use http::HeaderName;
use ipnet::{IpNet, Ipv4Net};

use super::host::Node;

const HOPS: RangeInclusive<u8> = 1..=16;

/// How a peer on a Unix socket, which has no address, is written in a list of proxies.
const UNIX: &str = "unix:";

/// Whose word is taken.
#[derive(Clone, Debug)]
pub(super) enum Trust {
    Proxies {
        networks: Box<[IpNet]>,
        unix: bool,
    },
    /// So many proxies, wherever they are.
    Hops(u8),
}

impl Trust {
    pub(super) fn proxies<I>(items: I) -> Result<Self, TrustError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let mut networks = Vec::new();
        let mut unix = false;
        for item in items {
            match item.as_ref() {
                item if item.trim() == UNIX => unix = true,
                item => {
                    let network = network(item).ok_or_else(|| TrustError::malformed(item))?;
                    if network.prefix_len() == 0 {
                        return Err(TrustError(Fault::Everybody(item.into())));
                    }
                    networks.push(network);
                }
            }
        }
        if networks.is_empty() && !unix {
            return Err(TrustError(Fault::Empty));
        }
        Ok(Self::Proxies { networks: networks.into(), unix })
    }

    pub(super) fn hops(hops: u8) -> Result<Self, TrustError> {
        if !HOPS.contains(&hops) {
            return Err(TrustError(Fault::Hops(hops)));
        }
        Ok(Self::Hops(hops))
    }

    /// Whether what this peer sends in the header counts. `None` is one without an address.
    pub(super) fn includes(&self, peer: Option<IpAddr>) -> bool {
        match (self, peer) {
            (Self::Proxies { networks, .. }, Some(peer)) => contains(networks, peer),
            (Self::Proxies { unix, .. }, None) => *unix,
            (Self::Hops(_), _) => true,
        }
    }

    /// The client, among what proxies say of the hosts before them, from the last one on. Nothing is
    /// read that stands before the client: that is the client's own.
    pub(super) fn client(&self, mut nodes: impl Iterator<Item = Option<Node>>) -> Option<IpAddr> {
        match self {
            Self::Proxies { networks, .. } => loop {
                let address = nodes.next()??.address()?;
                if !contains(networks, address) {
                    return Some(address);
                }
            },
            Self::Hops(hops) => {
                for _ in 1..*hops {
                    nodes.next()??;
                }
                nodes.next()??.address()
            }
        }
    }
}

fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// An address, or a range of them.
pub(crate) fn network(item: &str) -> Option<IpNet> {
    let text = item.trim();
    let address = text.parse::<IpAddr>().map(IpNet::from);
    address.or_else(|_| text.parse()).ok().map(canonical)
}

/// IPv4 as such, because that is how the addresses come that are looked for.
fn canonical(network: IpNet) -> IpNet {
    let (IpAddr::V4(address), Some(bits)) =
        (network.network().to_canonical(), network.prefix_len().checked_sub(96))
    else {
        return network;
    };
    Ipv4Net::new(address, bits).map_or(network, IpNet::V4)
}

/// Proxies that cannot be trusted as asked; the message names the bad value, and what it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustError(Fault);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    Empty,
    Malformed(Box<str>),
    Everybody(Box<str>),
    Hops(u8),
    Header(Box<str>),
    List(HeaderName),
}

impl TrustError {
    fn malformed(item: &str) -> Self {
        Self(Fault::Malformed(item.into()))
    }

    /// This is no name of a header.
    pub(super) fn header(name: &str) -> Self {
        Self(Fault::Header(name.into()))
    }

    /// This header has a list, of which not every element is to be trusted.
    pub(super) const fn list(name: HeaderName) -> Self {
        Self(Fault::List(name))
    }
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::Empty => f.write_str(
                "no proxy is trusted, so the header would never be read; \
                 without proxies use `ClientIp::peer()`",
            ),
            Fault::Malformed(item) => write!(
                f,
                "{item:?} is neither an address such as `::1` nor a range such as `10.0.0.0/8`, \
                 nor `{UNIX}`"
            ),
            Fault::Everybody(item) => write!(
                f,
                "{item:?} is everybody: clients could then write any address; a count of proxies needs \
                 none of theirs"
            ),
            Fault::Hops(hops) => {
                let (least, most) = (HOPS.start(), HOPS.end());
                write!(f, "{hops} proxies: there must be {least} to {most}")?;
                if *hops < *least {
                    f.write_str("; without, use `ClientIp::peer()`")
                } else {
                    Ok(())
                }
            }
            Fault::Header(name) => write!(f, "{name:?} is not the name of a header"),
            Fault::List(name) => {
                let constructor = name.as_str().replace('-', "_");
                write!(f, "`{name}` has a list of addresses: use `ClientIp::{constructor}`")
            }
        }
    }
}

impl std::error::Error for TrustError {}
