use std::{fmt, net::IpAddr};

use ipnet::{IpNet, Ipv4Net};

/// The addresses of proxies whose word is taken.
#[derive(Clone, Debug)]
pub(super) struct Trusted(Box<[IpNet]>);

impl Trusted {
    pub(super) fn parse<I>(items: I) -> Result<Self, TrustError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let networks: Box<[IpNet]> =
            items.into_iter().map(|item| network(item.as_ref())).collect::<Result<_, _>>()?;
        if networks.is_empty() {
            return Err(TrustError(Fault::Empty));
        }
        Ok(Self(networks))
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

fn network(item: &str) -> Result<IpNet, TrustError> {
    let text = item.trim();
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let network = address.or_else(|_| text.parse());
    network.map(canonical).map_err(|_| TrustError(Fault::Malformed(item.into())))
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

/// Proxies that cannot be trusted as asked; the message names the bad value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustError(Fault);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    Empty,
    Malformed(Box<str>),
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
                "{item:?} is neither an address such as `::1` nor a range such as `10.0.0.0/8`"
            ),
        }
    }
}

impl std::error::Error for TrustError {}
