use std::net::{IpAddr, SocketAddr};

use crate::key::{KeyError, RequestHead};

/// The address of the other end of the connection; IPv4 as such, however the socket writes it.
pub(super) fn address(head: RequestHead<'_>) -> Result<IpAddr, KeyError> {
    const ABSENT: KeyError = KeyError::setup(
        "the service does not tell the address of the peer. With axum, serve with \
         `axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>())`; \
         elsewhere, insert the peer's `SocketAddr` into the extensions of each request",
    );
    let peer = connect_info(head).or_else(|| head.extension::<SocketAddr>().copied());
    peer.map(|peer| peer.ip().to_canonical()).ok_or(ABSENT)
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
