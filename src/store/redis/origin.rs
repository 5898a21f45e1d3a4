//! Where connections come from.

use std::{sync::Arc, time::Duration};

use deadpool_redis::{
    Connection, Manager, Pool, Runtime,
    redis::{AsyncConnectionConfig, ConnectionInfo, aio::MultiplexedConnection},
};

use super::{
    error::{self, misconfigured},
    sentinel::Sentinels,
    url::Way,
};
use crate::store::{StoreError, StoreErrorKind};

pub(super) enum Origin {
    /// One server, or a pool of somebody's.
    Server(Server),
    /// The server that sentinels call the primary.
    Sentinels(Box<Sentinels>),
}

pub(super) struct Server {
    pub(super) pool: Pool,
    pub(super) way: Way,
}

/// A connection that was made.
pub(super) struct Opened {
    pub(super) connection: MultiplexedConnection,
    /// Which of the servers that were primaries one after another it leads to, where sentinels name them.
    pub(super) generation: u64,
    pub(super) way: Way,
}

impl Origin {
    pub(super) async fn connect(&self) -> Result<Opened, StoreError> {
        match self {
            Self::Server(server) => server.open().await,
            Self::Sentinels(sentinels) => sentinels.connect().await,
        }
    }

    /// No connection is kept for a later attempt.
    pub(super) fn close(&self) {
        match self {
            // Nobody else has one of its own, and a pool that was given is not ours to close.
            Self::Server(_) => {}
            Self::Sentinels(sentinels) => sentinels.close(),
        }
    }

    /// The error of an attempt to connect that took longer than this.
    pub(super) fn late(&self, limit: Duration) -> StoreError {
        let (whose, hint) = match self {
            Self::Server(server) => ("", server.way.hint()),
            Self::Sentinels(sentinels) => (sentinels.whose(), sentinels.hint()),
        };
        StoreError::new(
            StoreErrorKind::Timeout,
            format!("no connection to Redis{whose} within {limit:?}{hint}"),
        )
        .about(self.place().as_ref())
    }

    /// Where the server is, if that is known.
    pub(super) fn place(&self) -> Option<Arc<str>> {
        match self {
            Self::Server(server) => server.way.place.clone(),
            Self::Sentinels(sentinels) => sentinels.place(),
        }
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
        let connection = self.pool.get().await;
        connection.map_err(|cause| self.named(error::connecting(cause, &self.way)))
    }

    pub(super) async fn open(&self) -> Result<Opened, StoreError> {
        let connection = Connection::take(self.connect().await?);
        Ok(Opened { connection, generation: 0, way: self.way.clone() })
    }

    /// The same error, about this server.
    pub(super) fn named(&self, error: StoreError) -> StoreError {
        error.about(self.way.place.as_ref())
    }
}
