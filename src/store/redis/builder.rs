use std::{fmt, sync::Arc, time::Duration};

use deadpool_redis::Pool;

use super::{
    RedisStore, Servers, cluster,
    error::misconfigured,
    gather::Gathering,
    node::Node,
    origin::{Origin, Server},
    pulse::Pulse,
    sentinel::{Login, Seeds, Sentinels},
    slots::Slots,
    tls::Tls,
    url,
    worker::Worker,
};
use crate::store::StoreError;

/// Begins with the version of the form in which states are kept.
const DEFAULT_PREFIX: &str = "tg1";
const DEFAULT_CONNECTIONS: usize = 3;
const DEFAULT_DEADLINE: Duration = Duration::from_millis(100);
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

const MAX_CONNECTIONS: usize = 64;
const MAX_DEADLINE: Duration = Duration::from_secs(60);
const MAX_PREFIX: usize = 64;

/// Where connections come from.
#[derive(Clone)]
pub(super) enum Target {
    Url(Box<str>),
    Pool(Pool),
    /// Some nodes of a cluster, by a URL each.
    #[cfg(feature = "redis-cluster")]
    Cluster(Box<[Box<str>]>),
    #[allow(dead_code, reason = "only the feature for them makes one")]
    Sentinels(Seeds),
}

/// Builds a [`RedisStore`].
#[derive(Clone)]
#[must_use]
pub struct RedisStoreBuilder {
    target: Target,
    pub(super) connections: usize,
    pub(super) deadline: Duration,
    pub(super) connect_timeout: Duration,
    pub(super) prefix: Box<str>,
    own_thread: bool,
    pub(super) tls: Tls,
    pub(super) sentinel: Login,
}

impl RedisStoreBuilder {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            connections: DEFAULT_CONNECTIONS,
            deadline: DEFAULT_DEADLINE,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            prefix: DEFAULT_PREFIX.into(),
            own_thread: false,
            tls: Tls::default(),
            sentinel: Login::default(),
        }
    }

    /// Connections that all callers share, to each node of a cluster, 1 to 64. Default: 3. More do not help
    /// much: each carries any number of requests at a time.
    pub const fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// How long a request may take altogether, waiting and connecting included; more than 0, at most
    /// 60 s. Default: 100 ms. A request that was sent may have been charged all the same.
    ///
    /// Not counted is the time for which this process is late itself, up to ten times as long: answers of
    /// a server that is well decide also while the process is overloaded.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long an attempt to connect may take, in the background or at the start; more than 0, at
    /// most 60 s. Default: 1 s.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// What the names of all keys begin with, 1 to 64 printable ASCII characters without braces.
    /// Default: `tg1`. Instances share limits if they share the prefix.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into().into();
        self
    }

    /// Drives the connections on a thread of the store's own, with a runtime of its own, and not on that
    /// of the callers. Default: no.
    ///
    /// For services whose handlers need the processors for long: an answer of Redis then waits for one
    /// turn of their runtime's queue, instead of a turn at each step of its way. Also for programs that have
    /// several runtimes, or that run theirs only while they wait for something. It costs some
    /// microseconds for a request that comes alone. A pool of yours makes its connections there, too.
    pub const fn own_thread(mut self) -> Self {
        self.own_thread = true;
        self
    }

    /// Connects now.
    ///
    /// # Errors
    ///
    /// If a setting is out of its bounds, or the server cannot be reached or used: it is too old, say,
    /// or lacks scripts. Of a cluster, one primary has to be reached, and none may be unusable; to the
    /// others, attempts go on in the background.
    pub async fn connect(self) -> Result<RedisStore, StoreError> {
        let store = self.connect_lazy()?;
        match &store.0 {
            Servers::One(node) => node.slots.connect().await?,
            Servers::Cluster(cluster) => cluster.connect().await?,
        }
        Ok(store)
    }

    /// Connects with the first request. While the server cannot be reached or used, requests fail and
    /// the failure policy decides.
    ///
    /// # Errors
    ///
    /// If a setting is out of its bounds, or the URL or a certificate cannot be used.
    pub fn connect_lazy(self) -> Result<RedisStore, StoreError> {
        self.check()?;
        let seeds = match &self.target {
            Target::Url(url) => Seeds::in_url(url)?,
            Target::Sentinels(seeds) => Some(seeds.clone()),
            _ => None,
        };
        if let Some(seeds) = seeds {
            let sentinels = Sentinels::new(&seeds, &self)?;
            return Ok(self.over(Origin::Sentinels(Box::new(sentinels)), self.worker()?));
        }
        if self.sentinel.is_set() {
            return Err(misconfigured(
                "a login for sentinels is given, but the store is to have none".to_owned(),
            ));
        }
        match &self.target {
            Target::Url(url) => match cluster::seeds(url)? {
                Some(seeds) => self.over_cluster(&seeds),
                None => {
                    let info = self.tls.apply(url::connection_info(url)?)?;
                    let server = Server::new(info, self.connections)?;
                    Ok(self.over(Origin::Server(server), self.worker()?))
                }
            },
            Target::Pool(_) if self.tls.is_set() => Err(misconfigured(
                "certificates are given, but the connections come from a pool that has its own"
                    .to_owned(),
            )),
            Target::Pool(pool) => {
                let server = Server::of_pool(pool.clone());
                Ok(self.over(Origin::Server(server), self.worker()?))
            }
            #[cfg(feature = "redis-cluster")]
            Target::Cluster(seeds) => self.over_cluster(seeds),
            Target::Sentinels(_) => Err(misconfigured("no sentinel is named".to_owned())),
        }
    }

    fn worker(&self) -> Result<Worker, StoreError> {
        let worker = if self.own_thread { Worker::thread() } else { Ok(Worker::default()) };
        worker.map_err(|cause| {
            misconfigured(format!("there can be no thread for the connections: {cause}"))
        })
    }

    fn over_cluster(&self, seeds: &[Box<str>]) -> Result<RedisStore, StoreError> {
        let infos = seeds.iter().enumerate().map(|(at, url)| {
            let info = url::connection_info(url).map_err(|error| {
                let words = format!("node {} of the Redis Cluster: {}", at + 1, error.words());
                misconfigured(words).with_source(error)
            })?;
            self.tls.apply(info)
        });
        let infos = infos.collect::<Result<Vec<_>, _>>()?;
        let cluster = cluster::Cluster::new(self.clone(), infos, self.worker()?)?;
        Ok(RedisStore(Servers::Cluster(Arc::new(cluster))))
    }

    pub(super) fn over(&self, origin: Origin, worker: Worker) -> RedisStore {
        let node = self.node(origin, worker, Arc::new(Pulse::new()));
        RedisStore(Servers::One(Arc::new(node)))
    }

    pub(super) fn node(&self, origin: Origin, worker: Worker, pulse: Arc<Pulse>) -> Node {
        Node {
            slots: Slots::new(origin, self.connections, self.connect_timeout, worker.clone()),
            gathering: Gathering::new(self.connections, self.deadline),
            pulse,
            worker,
            deadline: self.deadline,
            prefix: self.prefix.clone(),
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        if !(1..=MAX_CONNECTIONS).contains(&self.connections) {
            let connections = self.connections;
            return Err(misconfigured(format!(
                "{connections} connections: there must be 1 to {MAX_CONNECTIONS}"
            )));
        }
        for (name, span) in [("deadline", self.deadline), ("connect timeout", self.connect_timeout)]
        {
            if span.is_zero() || span > MAX_DEADLINE {
                return Err(misconfigured(format!(
                    "a {name} of {span:?}: it must be more than 0 and at most {MAX_DEADLINE:?}"
                )));
            }
        }
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}');
        if !(1..=MAX_PREFIX).contains(&self.prefix.len()) || !self.prefix.bytes().all(plain) {
            let prefix = &self.prefix;
            return Err(misconfigured(format!(
                "the prefix {prefix:?}: it must be 1 to {MAX_PREFIX} printable ASCII characters, \
                 without braces, which would choose the cluster's slot"
            )));
        }
        Ok(())
    }
}

/// A URL may hold a password, and a key is a secret.
impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("connections", &self.connections)
            .field("deadline", &self.deadline)
            .field("connect_timeout", &self.connect_timeout)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
