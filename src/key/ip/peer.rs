use std::net::{IpAddr, SocketAddr};

use super::Prefixes;
use crate::key::{Key, KeyError, KeyExtractor, Keys, RequestHead};

/// Counts by the address that the connection comes from.
///
/// For services that clients reach directly. Behind a proxy all of them come from the proxy's
/// address and share one limit: use [`ClientIp`](super::ClientIp) there.
///
/// An IPv4 address is counted for itself, an IPv6 address by its /64, within which a client can
/// choose addresses freely. [`ClientIp::peer`](super::ClientIp::peer) lets you choose other prefixes.
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
        let address = address(head).ok_or(ABSENT)?;
        Ok(Prefixes::DEFAULT.key(address).into())
    }
}

pub(super) const ABSENT: KeyError = KeyError::setup(
    "the service does not tell the address of the peer. With axum, serve with \
     `axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>())`; \
     elsewhere, insert the peer's `SocketAddr` into the extensions of each request; a Unix socket has \
     none: there, use a `ClientIp` that trusts \"unix:\"",
);

/// The address of the other end of the connection; IPv4 as such, however the socket writes it.
pub(super) fn address(head: RequestHead<'_>) -> Option<IpAddr> {
    let peer = connect_info(head).or_else(|| head.extension::<SocketAddr>().copied());
    peer.map(|peer| peer.ip().to_canonical())
}

#[cfg(feature = "axum")]
fn connect_info(head: RequestHead<'_>) -> Option<SocketAddr> {
    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};

    let real = || head.extension().map(|ConnectInfo(peer)| *peer);
    let mock = || head.extension().map(|MockConnectInfo(peer)| *peer);
    real().or_else(mock)
}

#[cfg(not(feature = "axum"))]
const fn connect_info(_: RequestHead<'_>) -> Option<SocketAddr> {
    None
}
