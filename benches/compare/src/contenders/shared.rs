//! Without HTTP: this crate's limiter, and two ways to ask Redis oneself.

use std::{fmt::Write as _, sync::Arc};

use deadpool_redis::{
    Manager, Pool, Runtime,
    redis::{
        AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo as _, Script, Value,
        aio::MultiplexedConnection, io::tcp::TcpSettings,
    },
};
use tollgate::{Limit, Limiter, RedisStore};

use super::{Contender, PATIENCE, Room};
use crate::source::ACQUIRE;

const PLAIN: &str = include_str!("../../../redis/plain.lua");

/// The name of [`ACQUIRE`] at a server.
pub(crate) fn script_sha() -> String {
    Script::new(ACQUIRE).get_hash().to_owned()
}

/// A store with keys of its own.
pub(crate) async fn redis(url: &str, prefix: &str) -> RedisStore {
    let store = RedisStore::builder(url).prefix(prefix).deadline(PATIENCE).connect().await;
    store.expect("the server was started")
}

/// This crate.
#[derive(Clone)]
pub(crate) struct Tollgate {
    limiter: Limiter,
    limit: Limit,
    /// Written for each check: a list of all would be read from far away, as no request is.
    user: String,
}

impl Tollgate {
    pub(crate) fn new(limiter: &Limiter, limit: &Limit) -> Self {
        Self { limiter: limiter.clone(), limit: limit.clone(), user: String::new() }
    }
}

impl Contender for Tollgate {
    async fn check(&mut self, key: usize) -> bool {
        self.user.clear();
        let _ = write!(self.user, "user:{key}");
        let decision = self.limiter.check(&self.limit, self.user.as_str()).await;
        decision.expect("the store answers").is_allowed()
    }
}

/// A connection checked out of a pool for each request, and the script that everybody writes.
#[derive(Clone)]
pub(crate) struct Checkout {
    pool: Pool,
    script: Arc<Script>,
    names: Arc<[String]>,
    room: Room,
}

impl Checkout {
    pub(crate) fn new(url: &str, room: Room, keys: usize) -> Self {
        // Only the timeout of an answer is not the stock one, as above.
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
        let manager = Manager::new_with_config(url, config).expect("a valid URL");
        let pool = Pool::builder(manager).max_size(16).runtime(Runtime::Tokio1).build();
        Self {
            pool: pool.expect("a valid pool"),
            script: Arc::new(Script::new(PLAIN)),
            names: (0..keys).map(|key| format!("plain:{{id:user:{key}}}:-/bench")).collect(),
            room,
        }
    }
}

impl Contender for Checkout {
    async fn check(&mut self, key: usize) -> bool {
        let mut connection = self.pool.get().await.expect("the server was started");
        let mut call = self.script.key(&self.names[key]);
        call.arg(1.0 / self.room.every.as_secs_f64()).arg(self.room.burst).arg(1);
        let answer = call.invoke_async::<(u64, u64)>(&mut *connection).await;
        answer.expect("the server answers").0 == 1
    }
}

/// Connections that callers share, the script of this crate, and nothing else.
#[derive(Clone)]
pub(crate) struct Raw {
    connections: Arc<[MultiplexedConnection]>,
    connection: MultiplexedConnection,
    sha: Arc<str>,
    names: Arc<[String]>,
    arg: Arc<str>,
}

impl Raw {
    pub(crate) async fn connect(url: &str, room: Room, keys: usize, count: usize) -> Self {
        let info = url.into_connection_info().expect("a valid URL");
        let tcp = TcpSettings::default().set_nodelay(true);
        let client = Client::open(info.set_tcp_settings(tcp)).expect("a valid URL");
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let mut connections = Vec::new();
        for _ in 0..count {
            let connection = client.get_multiplexed_async_connection_with_config(&config).await;
            connections.push(connection.expect("the server was started"));
        }
        let mut connection = connections[0].clone();
        let script = Script::new(ACQUIRE);
        let loaded = script.load_async(&mut connection).await;
        Self {
            connection,
            connections: connections.into(),
            sha: loaded.expect("the server answers").into(),
            names: (0..keys)
                .map(|key| format!("raw:{{id:user:{key}}}:-/bench:tb600000s"))
                .collect(),
            arg: room.parameters().into(),
        }
    }
}

impl Contender for Raw {
    fn caller(&self, at: usize) -> Self {
        let connection = self.connections[at % self.connections.len()].clone();
        Self { connection, ..self.clone() }
    }

    async fn check(&mut self, key: usize) -> bool {
        let mut call = Cmd::with_capacity(6, 160);
        call.arg("EVALSHA").arg(&*self.sha).arg(1).arg(&self.names[key]).arg(1).arg(&*self.arg);
        let answer = self.connection.send_packed_command(&call).await;
        let answer = answer.and_then(|answer| answer.extract_error()).expect("the server answers");
        let Value::Array(answer) = answer else { return false };
        matches!(answer[..], [Value::Int(_), Value::Int(0..)])
    }
}
