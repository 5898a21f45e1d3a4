//! Where connections come from.

use std::time::Duration;

use deadpool_redis::{
    Connection, Manager, Pool, Runtime,
    redis::{AsyncConnectionConfig, ConnectionInfo, aio::MultiplexedConnection},
};

use super::{
    error::{self, misconfigured},
    sentinel::Sentinels,
    url::{Transport, Way},
};
use crate::store::{StoreError, StoreErrorKind};

pub(super) enum Origin {
    /// One server, or a pool of somebody's.
    Server(Server),
    /// The server that sentinels call the primary.
    Sentinels(Box<Sentinels>),
}

pub(super) struct Server {
    pool: Pool,
    way: Way,
}

/// A connection, and which of the servers that were primaries one after another it leads to.
pub(super) type Opened = (MultiplexedConnection, u64);

impl Origin {
    pub(super) async fn connect(&self) -> Result<Opened, StoreError> {
        match self {
            Self::Server(server) => Ok((Connection::take(server.connect().await?), 0)),
            Self::Sentinels(sentinels) => sentinels.connect().await,
        }
    }

    /// The error of an attempt to connect that took longer than this.
    pub(super) fn late(&self, limit: Duration) -> StoreError {
        let (place, hint) = match self {
            Self::Server(server) => server.place(),
            Self::Sentinels(sentinels) => (sentinels.place(), ""),
        };
        StoreError::new(
            StoreErrorKind::Timeout,
            format!("no connection to Redis{place} within {limit:?}{hint}"),
        )
    }
}

impl Server {
    pub(super) fn new(info: ConnectionInfo, connections: usize) -> Result<Self, StoreError> {
        let way = Way::to(&info);
        // All of it is bounded here, so the client need not run timers of its own.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let manager = Manager::new_with_config(info, config).map_err(error::classify)?;
        let pool = Pool::builder(manager)
            .max_size(connections)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|cause| misconfigured(format!("the pool: {cause}")))?;
        Ok(Self { pool, way })
    }

    pub(super) fn of_pool(pool: Pool) -> Self {
        Self { pool, way: Way::of_pool() }
    }

    pub(super) async fn connect(&self) -> Result<Connection, StoreError> {
        self.pool.get().await.map_err(|cause| error::connecting(cause, &self.way))
    }

    fn place(&self) -> (&str, &'static str) {
        let Way { transport, place } = &self.way;
        // A server without TLS waits for the end of what it takes for a command.
        let hint = if *transport == Transport::Tls { "; is TLS spoken there?" } else { "" };
        (place, hint)
    }
}
