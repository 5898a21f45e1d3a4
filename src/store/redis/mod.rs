//! States kept in Redis, or in a server that speaks its protocol and runs its scripts.

mod ask;
mod builder;
mod call;
#[cfg_attr(feature = "redis-cluster", path = "cluster/mod.rs")]
#[cfg_attr(not(feature = "redis-cluster"), path = "no_cluster.rs")]
mod cluster;
mod error;
mod gather;
mod greeting;
mod mode;
mod node;
mod origin;
mod parameters;
mod pulse;
mod script;
#[cfg_attr(feature = "redis-sentinel", path = "sentinel/mod.rs")]
#[cfg_attr(not(feature = "redis-sentinel"), path = "no_sentinel.rs")]
mod sentinel;
mod slot;
mod slots;
mod source;
#[cfg_attr(feature = "tls", path = "tls.rs")]
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod url;
mod wire;
mod worker;

use std::{borrow::Cow, fmt, pin::Pin, sync::Arc, time::Duration};

use deadpool_redis::{Pool, redis::Value};
use tokio::{runtime::Handle, task};

pub use self::builder::RedisStoreBuilder;
use self::{
    builder::Target,
    call::Call,
    cluster::Cluster,
    node::Node,
    origin::{Origin, Server},
    wire::Request,
    worker::Worker,
};
use super::{Hit, Refund, Reply, Store, StoreError, StoreErrorKind, check, check_refunds};

/// Keeps the states of limits in Redis, shared by all instances that use the same server and
/// prefix. Clones share the connections.
///
/// One script decides each request atomically, by the server's clock. Requests go out over a few
/// connections that all callers share; a pool only makes them. One deadline covers waiting,
/// connecting and the answer, so that a dead or frozen server delays a request by no more than that.
/// A connection that breaks is replaced in the background.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tollgate::RedisStore;
///
/// let store = RedisStore::connect("redis://127.0.0.1/").await?;
///
/// let tuned = RedisStore::builder("redis://:secret@limits.internal:6379/2")
///     .connections(4)
///     .deadline(Duration::from_millis(50))
///     .prefix("shop1")
///     .connect_lazy()?;
/// # Ok(()) }
/// ```
///
/// # The server
///
/// Redis from 6.2 or Valkey. An eviction policy such as `allkeys-lru` makes the server forget limits
/// when its memory is full; give them a server, or at least a policy, that does not. A server that is
/// too old, or that has no scripts, is refused: by [`connect`](Self::connect), or with the first request
/// of a store that connects lazily.
///
/// URLs have the form `redis://[user][:password@]host[:port][/database]`, or
/// `redis+unix:///path[?db=number&user=name&pass=password]`; `valkey://`, `valkey+unix://` and `unix://`
/// mean the same. In a user and a password, characters such as `@ : / ? # %` and spaces are written as
/// `%40` and so on.
///
/// `rediss://` and `valkeys://` stand for TLS, and need the cargo feature `tls`. The server's certificate
/// and name are always checked. The builder takes a root certificate of your own, and one to show to
/// the server. TLS is that of `rustls`, with the provider that the process has installed, or else `ring`,
/// which is then installed.
///
/// `redis+sentinel://[user][:password@]host[:port][,host[:port]…]/name[/database]` names sentinels, and the
/// primary to be asked for. It needs the cargo feature `redis-sentinel`, as `RedisStore::sentinel` does.
/// The user and the password are those of the data servers.
///
/// # Clusters
///
/// `redis+cluster://[user][:password@]host[:port],host[:port]…` stands for a Redis Cluster of which it names
/// some nodes, `rediss+cluster://` for one with TLS. It needs the cargo feature `redis-cluster`, which also has
/// a constructor of its own, `RedisStore::cluster`. Nodes that fail hold up only requests to their states,
/// which are served again once a replica has taken over; slots that move are followed.
///
/// All limits of one key lie in one slot, and are charged in one call. Those of different keys are charged one
/// after the other, and given back if a later one denies: a request is charged to all of its limits or to
/// none, and no limit admits more than it may, but others may be denied what is given back a moment later. If
/// a node fails in that moment, the units of the requests under way are withheld until they are refilled.
/// [`one_slot`](RedisStoreBuilder::one_slot) keeps all states in one slot instead.
///
/// # The user's rights
///
/// These are enough, for a store with the default prefix:
///
/// ```text
/// ACL SETUSER limits on >password ~tg1:* resetchannels -@all +evalsha +eval +script|load +time +ping
///   +get +set +incrby +expireat
///   +zadd +zcard +zcount +zrange +zrangebyscore +zrevrange +zremrangebyscore +zremrangebyrank
///   +del
/// ```
///
/// The third line is for [sliding logs](crate::Algorithm::SlidingLog), the last one to
/// [reset](crate::Limiter::reset) a limit. In a cluster, `+cluster|slots +asking` come on top.
///
/// A connection uses the Tokio runtime, with its timers, that it was made in, so that runtime has to go on
/// running: a store that is shared by several of them, or whose callers only block on it, has better
/// [a thread of its own](RedisStoreBuilder::own_thread).
#[derive(Clone)]
pub struct RedisStore(Servers);

/// Where the states are.
#[derive(Clone)]
enum Servers {
    One(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl RedisStore {
    /// Connects to the server at `url`, with the defaults of the [builder](Self::builder).
    ///
    /// # Errors
    ///
    /// If the URL is wrong, or the server cannot be reached or used.
    pub async fn connect(url: impl AsRef<str>) -> Result<Self, StoreError> {
        Self::builder(url).connect().await
    }

    /// A store with settings of your own.
    pub fn builder(url: impl AsRef<str>) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Target::Url(url.as_ref().into()))
    }

    /// A store whose connections come from a pool of yours, and are taken out of it for good. It
    /// connects with the first request.
    ///
    /// The pool's settings apply to connecting; Nagle's algorithm should be off in them.
    #[must_use]
    pub fn from_pool(pool: Pool) -> Self {
        let origin = Origin::Server(Server::of_pool(pool.clone()));
        RedisStoreBuilder::new(Target::Pool(pool)).over(origin, Worker::default())
    }

    /// A store with settings of your own, whose connections come from a pool of yours.
    pub fn pool_builder(pool: Pool) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Target::Pool(pool))
    }
}

impl Store for RedisStore {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        if let Err(error) = check(hits) {
            return Reply::now(Err(error));
        }
        if let Err(error) = check_runtime() {
            return Reply::now(Err(error));
        }
        match &self.0 {
            Servers::One(node) => {
                pulse::rouse(node);
                node::enter(Arc::clone(node), Request::new(&node.prefix, hits))
            }
            Servers::Cluster(cluster) => cluster.acquire(hits),
        }
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        match check_refunds(refunds) {
            Err(error) => return Reply::now(Err(error)),
            Ok(()) if refunds.is_empty() => return Reply::now(Ok(())),
            Ok(()) => {}
        }
        if let Err(error) = check_runtime() {
            return Reply::now(Err(error));
        }
        let count = refunds.len();
        match &self.0 {
            Servers::One(node) => run(node, Call::refund(&node.prefix, refunds), move |value| {
                wire::refunded(value, count)
            }),
            Servers::Cluster(cluster) => cluster.refund(refunds),
        }
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        if keys.is_empty() {
            return Reply::now(Ok(()));
        }
        if let Err(error) = check_runtime() {
            return Reply::now(Err(error));
        }
        match &self.0 {
            Servers::One(node) => run(node, Call::reset(&node.prefix, keys), wire::forgotten),
            Servers::Cluster(cluster) => cluster.reset(keys),
        }
    }

    fn identity(&self) -> Option<usize> {
        Some(match &self.0 {
            Servers::One(node) => Arc::as_ptr(node).addr(),
            Servers::Cluster(cluster) => Arc::as_ptr(cluster).addr(),
        })
    }

    fn lateness(&self) -> Duration {
        match &self.0 {
            Servers::One(node) => node.pulse.lateness(),
            Servers::Cluster(cluster) => cluster.lateness(),
        }
    }

    fn shard(&self, key: &[u8]) -> u32 {
        match &self.0 {
            Servers::One(_) => 0,
            Servers::Cluster(cluster) => cluster.shard(key),
        }
    }

    fn shard_name(&self, shard: u32) -> Option<Cow<'_, str>> {
        match &self.0 {
            Servers::One(node) => Some(node.slots.place()?.to_string().into()),
            Servers::Cluster(cluster) => Some(cluster.place(shard)?.to_string().into()),
        }
    }

    fn shutdown(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        match &self.0 {
            Servers::One(node) => node.slots.close(),
            Servers::Cluster(cluster) => cluster.close(),
        }
        Box::pin(std::future::ready(()))
    }
}

/// One call on its caller's task.
fn run(
    node: &Arc<Node>,
    call: Call,
    read: impl FnOnce(&Value) -> Result<(), StoreError> + Send + 'static,
) -> Reply<()> {
    pulse::rouse(node);
    let node = Arc::clone(node);
    Reply::later(
        async move { read(&node.call(&call, 1).await?).map_err(|error| node.named(error)) },
    )
}

fn check_runtime() -> Result<(), StoreError> {
    // Within a task, which is cheaper to see, there is a runtime.
    if task::try_id().is_some() || Handle::try_current().is_ok() {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::Misconfigured,
        "Redis needs a Tokio runtime, and there is none here",
    ))
}

/// A URL may hold a password.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Servers::One(node) => f
                .debug_struct("RedisStore")
                .field("prefix", &node.prefix)
                .field("deadline", &node.deadline)
                .field("connections", &node.slots.len())
                .finish(),
            Servers::Cluster(cluster) => fmt::Debug::fmt(cluster, f),
        }
    }
}
