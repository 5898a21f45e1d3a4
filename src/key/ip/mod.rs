mod forwarded;
mod peer;
mod prefix;
mod trust;

use std::net::IpAddr;

use self::{forwarded::x_forwarded_for, prefix::Prefixes, trust::Trusted};
pub use self::{prefix::PrefixError, trust::TrustError};
use super::{Key, KeyError, KeyExtractor, Keys, RequestHead};

/// Counts by the address that the connection comes from.
///
/// For services that clients reach directly. Behind a proxy all of them come from the proxy's
/// address and share one limit: use [`ClientIp::x_forwarded_for`] there.
///
/// An IPv4 address is counted for itself, an IPv6 address by its /64, within which a client can
/// choose addresses freely. [`ClientIp::peer`] lets you choose other prefixes.
///
/// # Where the address comes from
///
/// The service has to put it into the extensions of the request. axum does (with the feature
/// `axum` of this crate, which is on by default) if served with
///
/// ```
/// # use std::net::SocketAddr;
/// # use axum::Router;
/// # async fn serve(listener: tokio::net::TcpListener, app: Router) -> std::io::Result<()> {
/// axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
/// # }
/// ```
///
/// and so does its `MockConnectInfo` layer in tests. Elsewhere insert a plain
/// [`SocketAddr`](std::net::SocketAddr):
///
/// ```
/// use std::net::SocketAddr;
///
/// use http::Request;
/// use tollgate::key::{KeyExtractor, PeerIp, RequestHead};
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert("[2001:db8:0:1:2:3:4:5]:4711".parse::<SocketAddr>()?);
/// let keys = PeerIp.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "ip:2001:db8:0:1::/64");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
///
/// Without an address, the error is one of [setup](KeyError::setup) that says what to add.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerIp;

impl PeerIp {
    /// The key of an address, to look at its limits or to reset them.
    #[must_use]
    pub fn key(address: IpAddr) -> Key {
        Prefixes::DEFAULT.key(address.to_canonical())
    }
}

impl KeyExtractor for PeerIp {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        peer::address(head).map(|address| Prefixes::DEFAULT.key(address).into())
    }
}

/// Counts by the address of the client, also behind proxies, and by prefixes of your choice.
///
/// ```
/// use std::net::SocketAddr;
///
/// use http::Request;
/// use tollgate::key::{ClientIp, KeyExtractor, RequestHead};
///
/// let client = ClientIp::x_forwarded_for(["10.0.0.0/8", "::1"])?;
///
/// let request = Request::get("/").header("x-forwarded-for", "6.6.6.6, 192.0.2.7");
/// let request = request.extension(SocketAddr::from(([10, 0, 0, 1], 4711))).body(()).unwrap();
/// let keys = client.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "ip:192.0.2.7");
/// # Ok::<(), tollgate::key::TrustError>(())
/// ```
///
/// The peer address is found as for [`PeerIp`], and the keys are the same as those of `PeerIp`.
#[derive(Clone, Debug)]
pub struct ClientIp {
    source: Source,
    prefixes: Prefixes,
}

#[derive(Clone, Debug)]
enum Source {
    Peer,
    XForwardedFor(Trusted),
}

impl ClientIp {
    /// The address that the connection comes from.
    #[must_use]
    pub const fn peer() -> Self {
        Self { source: Source::Peer, prefixes: Prefixes::DEFAULT }
    }

    /// The address that the outermost of the `trusted` proxies saw, from `X-Forwarded-For`.
    ///
    /// `trusted` are the addresses (`::1`) and ranges (`10.0.0.0/8`) of your proxies. Every one of
    /// them must append the address of *its* peer to the header, as is usual.
    ///
    /// The header counts only if the peer is trusted. Then all its lines are read from right to
    /// left, past trusted addresses, and the first other address is that of the client; what stands
    /// left of it may be forged and is not looked at. An address may carry a port, which is no part
    /// of the key.
    ///
    /// If the header is absent, has nothing but trusted addresses, or if there is anything but an
    /// address before an untrusted one is found, the key is that of the peer: then the clients of
    /// that proxy are counted together, but none evades the limit.
    ///
    /// IPv4 is matched as IPv4 also where it is written as `::ffff:192.0.2.7`; so `::/0` does not
    /// contain it.
    ///
    /// # Errors
    ///
    /// If an item is neither an address nor a range, or if there is none.
    pub fn x_forwarded_for<I>(trusted: I) -> Result<Self, TrustError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let source = Source::XForwardedFor(Trusted::parse(trusted)?);
        Ok(Self { source, prefixes: Prefixes::DEFAULT })
    }

    /// Counts all IPv6 addresses that share their first `bits` bits as one, 64 by default.
    ///
    /// Choose less if clients are given larger networks, such as a /56 or a /48.
    ///
    /// # Errors
    ///
    /// If `bits` is not within 32 to 128.
    pub fn ipv6_prefix(self, bits: u8) -> Result<Self, PrefixError> {
        Ok(Self { prefixes: self.prefixes.with_v6(bits)?, ..self })
    }

    /// Counts all IPv4 addresses that share their first `bits` bits as one, 32 by default: every
    /// address for itself.
    ///
    /// # Errors
    ///
    /// If `bits` is not within 8 to 32.
    pub fn ipv4_prefix(self, bits: u8) -> Result<Self, PrefixError> {
        Ok(Self { prefixes: self.prefixes.with_v4(bits)?, ..self })
    }

    /// The key of an address, to look at its limits or to reset them.
    #[must_use]
    pub fn key(&self, address: IpAddr) -> Key {
        self.prefixes.key(address.to_canonical())
    }

    fn address(&self, head: RequestHead<'_>) -> Result<IpAddr, KeyError> {
        let peer = peer::address(head)?;
        Ok(match &self.source {
            Source::XForwardedFor(trusted) if trusted.contains(peer) => {
                x_forwarded_for(head.headers(), trusted).unwrap_or(peer)
            }
            Source::XForwardedFor(_) | Source::Peer => peer,
        })
    }
}

impl KeyExtractor for ClientIp {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        self.address(head).map(|address| self.prefixes.key(address).into())
    }
}
