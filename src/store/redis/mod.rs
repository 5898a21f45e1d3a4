//! States kept in Redis, or in a server that speaks its protocol and runs its scripts.

mod ask;
mod builder;
mod call;
mod error;
mod gather;
mod greeting;
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

use std::{fmt, iter, pin::Pin, sync::Arc, time::Duration};

use deadpool_redis::{Pool, redis::Value};
use tokio::{runtime::Handle, task};

pub use self::builder::RedisStoreBuilder;
use self::{
    builder::Target,
    call::Call,
    gather::{Driver, Entry, Gathering},
    origin::{Origin, Server},
    pulse::{Beats, Pulse},
    slots::Slots,
    wire::Request,
    worker::Worker,
};
use super::{Answer, Hit, Refund, Reply, Store, StoreError, StoreErrorKind, check, check_refunds};

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
/// [reset](crate::Limiter::reset) a limit.
///
/// A connection uses the Tokio runtime, with its timers, that it was made in, so that runtime has to go on
/// running: a store that is shared by several of them, or whose callers only block on it, has better
/// [a thread of its own](RedisStoreBuilder::own_thread).
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    slots: Slots,
    gathering: Gathering,
    pulse: Pulse,
    worker: Worker,
    deadline: Duration,
    prefix: Box<str>,
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
        self.rouse();
        let request = Request::new(&self.0.prefix, hits);
        match self.0.gathering.enter(request) {
            Entry::Alone(request) => {
                let alone = Alone(Arc::clone(&self.0));
                Reply::later(async move { alone.ask(&request).await })
            }
            Entry::Waits(answer, driver) => {
                let inner = Arc::clone(&self.0);
                if let Some(number) = driver {
                    self.0.worker.spawn(Driver::new(Arc::clone(&inner), number).drive());
                }
                Reply::later(async move { inner.wait(answer).await })
            }
            Entry::Full => Reply::now(Err(StoreError::new(
                StoreErrorKind::Overloaded,
                "too many requests wait for Redis",
            ))),
        }
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        match check_refunds(refunds) {
            Err(error) => return Reply::now(Err(error)),
            Ok(()) if refunds.is_empty() => return Reply::now(Ok(())),
            Ok(()) => {}
        }
        let count = refunds.len();
        self.run(Call::refund(&self.0.prefix, refunds), move |value| wire::refunded(value, count))
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        if keys.is_empty() {
            return Reply::now(Ok(()));
        }
        self.run(Call::reset(&self.0.prefix, keys), wire::forgotten)
    }

    fn identity(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.0).addr())
    }

    fn lateness(&self) -> Duration {
        self.0.pulse.lateness()
    }

    fn shutdown(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.slots.close();
        Box::pin(std::future::ready(()))
    }
}

impl RedisStore {
    /// A call begins, on a runtime.
    fn rouse(&self) {
        if let Some(number) = self.0.pulse.rouse() {
            tokio::spawn(Beats::new(Arc::clone(&self.0), number).run());
        }
    }

    fn run(
        &self,
        call: Call,
        read: impl FnOnce(&Value) -> Result<(), StoreError> + Send + 'static,
    ) -> Reply<()> {
        if let Err(error) = check_runtime() {
            return Reply::now(Err(error));
        }
        self.rouse();
        let inner = Arc::clone(&self.0);
        Reply::later(async move { read(&inner.call(&call, 1).await?) })
    }
}

/// A request on its caller's task, which may go away at any time.
struct Alone(Arc<Inner>);

impl Alone {
    async fn ask(&self, request: &Request) -> Result<Answer, StoreError> {
        let value = self.0.call(&Call::acquire(iter::once(request)), 1).await?;
        let (now, values) = wire::answers(&value, request.hits().len())?;
        request.answer(now, values)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.gathering.leave();
    }
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
        f.debug_struct("RedisStore")
            .field("prefix", &self.0.prefix)
            .field("deadline", &self.0.deadline)
            .field("connections", &self.0.slots.len())
            .finish()
    }
}
