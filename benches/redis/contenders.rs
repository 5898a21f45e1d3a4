//! Ways to ask Redis whether a key may take one unit. All of them admit every request.

use std::{sync::Arc, time::Duration};

use deadpool_redis::{
    Manager, Pool, Runtime,
    redis::{
        AsyncConnectionConfig, Client, Cmd, IntoConnectionInfo as _, Script, Value,
        aio::MultiplexedConnection, io::tcp::TcpSettings,
    },
};
use tollgate::{Limit, Limiter, Quota, RedisStore};

use crate::source::ACQUIRE;

/// What every caller asks: long enough a refill that states stay, wide enough that all pass.
const QUANTITY: u64 = 100;
const BURST: u64 = 1_000_000;

/// Benchmarks run on machines that are busy; a deadline that passes is not what is measured.
const PATIENCE: Duration = Duration::from_secs(10);

const PLAIN: &str = include_str!("plain.lua");

/// One caller's way to ask.
pub(crate) trait Contender: Clone + Send + Sync + 'static {
    /// What caller number `at` uses.
    fn caller(&self, at: usize) -> Self {
        let _ = at;
        self.clone()
    }

    /// Takes one unit for key number `key`, and says whether that was admitted.
    fn check(&mut self, key: usize) -> impl Future<Output = bool> + Send;
}

/// This crate.
#[derive(Clone)]
pub(crate) struct Tollgate {
    limiter: Limiter,
    limit: Limit,
    users: Arc<[String]>,
}

impl Tollgate {
    pub(crate) async fn connect(url: &str, keys: usize) -> Self {
        let store = RedisStore::builder(url).deadline(PATIENCE).connect().await;
        Self {
            limiter: Limiter::new(store.expect("the server was started")),
            limit: Limit::new("bench", Quota::per_minute(QUANTITY).burst(BURST)),
            users: (0..keys).map(|key| format!("user:{key}")).collect(),
        }
    }
}

impl Contender for Tollgate {
    async fn check(&mut self, key: usize) -> bool {
        let decision = self.limiter.check(&self.limit, self.users[key].as_str()).await;
        decision.expect("the server answers").is_allowed()
    }
}

/// A connection checked out of a pool for each request, and the script that everybody writes.
#[derive(Clone)]
pub(crate) struct Checkout {
    pool: Pool,
    script: Arc<Script>,
    names: Arc<[String]>,
}

impl Checkout {
    pub(crate) fn new(url: &str, keys: usize) -> Self {
        // Only the timeout of an answer is not the stock one, as above.
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE));
        let manager = Manager::new_with_config(url, config).expect("a valid URL");
        let pool = Pool::builder(manager).max_size(16).runtime(Runtime::Tokio1).build();
        Self {
            pool: pool.expect("a valid pool"),
            script: Arc::new(Script::new(PLAIN)),
            names: (0..keys).map(|key| format!("plain:{{id:user:{key}}}:-/bench")).collect(),
        }
    }
}

impl Contender for Checkout {
    async fn check(&mut self, key: usize) -> bool {
        let mut connection = self.pool.get().await.expect("the server was started");
        let mut call = self.script.key(&self.names[key]);
        call.arg(QUANTITY as f64 / 60.0).arg(BURST).arg(1);
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
    pub(crate) async fn connect(url: &str, keys: usize, count: usize) -> Self {
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
        let unit = 60_000_000 / QUANTITY;
        Self {
            connection,
            connections: connections.into(),
            sha: loaded.expect("the server answers").into(),
            names: (0..keys)
                .map(|key| format!("raw:{{id:user:{key}}}:-/bench:tb600000s"))
                .collect(),
            arg: format!("{unit} {}", unit * BURST).into(),
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
