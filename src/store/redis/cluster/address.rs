use std::fmt;

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo};

use crate::store::redis::url;

/// Where a node listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    host: Box<str>,
    port: u16,
}

impl Address {
    /// An address as a node tells it that was asked at `asked`: without a host, that is the same. None, if
    /// it does not know.
    pub(super) fn told(host: &str, port: u16, asked: &Self) -> Option<Self> {
        match host {
            "?" => None,
            "" => Some(Self { port, ..asked.clone() }),
            host => Some(Self { host: host.into(), port }),
        }
    }

    /// The address in a redirection, as in `127.0.0.1:7000`.
    pub(super) fn parse(text: &str, asked: &Self) -> Option<Self> {
        // The last colon: hosts may be addresses of IPv6, without brackets.
        let (host, port) = text.rsplit_once(':')?;
        Self::told(host, port.parse().ok()?, asked)
    }

    /// That of a server that is reached over TCP.
    pub(super) fn of(info: &ConnectionInfo) -> Option<Self> {
        match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self { host: host.as_str().into(), port: *port })
            }
            _ => None,
        }
    }

    /// How to connect to this address, as one connects to `other`.
    pub(super) fn like(&self, other: &ConnectionInfo) -> ConnectionInfo {
        let (host, port) = (self.host.to_string(), self.port);
        let address = match other.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        other.clone().set_addr(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&url::host_and_port(&self.host, self.port))
    }
}
