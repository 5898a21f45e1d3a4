//! Ports on the loopback interface.

use std::net::{Ipv4Addr, TcpListener};

/// A loopback port that nobody listens on at the moment.
///
/// It lies below the range from which systems take the ports of outgoing connections. A client
/// that keeps connecting to a dead server's port in that range would, sooner or later, be given
/// that very port and end up connected to itself.
pub(crate) fn free_port() -> u16 {
    (0..1000)
        .map(|_| fastrand::u16(20_000..32_000))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("no free port between 20000 and 32000 on the loopback interface")
}
