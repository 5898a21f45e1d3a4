//! States kept in a Redis Cluster.
//!
//! Each primary is a [`Node`](super::node::Node), as one server is. The client's own connection to
//! clusters is not used: one task of it drives all, and stands still for healthy nodes while another
//! fails; and it does not tell which node a request went to.

mod address;
mod batch;
mod follow;
mod map;
mod numbers;
mod pipeline;
mod redirect;
mod refresh;
mod several;
mod slot;
mod told;
mod topology;
mod url;

use std::{fmt, sync::Arc, time::Duration};

use deadpool_redis::redis::{ConnectionInfo, Value};
use tokio::task::JoinSet;

pub(super) use self::url::seeds;
use self::{
    address::Address, batch::Routed, follow::Errand, refresh::Refresh, slot::slot,
    topology::Topology,
};
use super::{
    RedisStore, RedisStoreBuilder,
    builder::Target,
    call::Call,
    gather::abandoned,
    node,
    pulse::{self, Beating, Pulse},
    wire::{self, Request},
    worker::Worker,
};
use crate::store::{Hit, Refund, Reply, StoreError, StoreErrorKind};

/// A cluster, and the connections to its nodes.
pub(super) struct Cluster {
    topology: Topology,
    refresh: Refresh,
    /// Nodes that were given.
    seeds: Box<[(Address, ConnectionInfo)]>,
    prefix: Box<str>,
    connections: usize,
    deadline: Duration,
    connect_timeout: Duration,
}

/// Stores over a Redis Cluster.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use tollgate::RedisStore;
///
/// let nodes = ["redis://:secret@10.0.0.1:7000", "redis://:secret@10.0.0.2:7000"];
/// let store = RedisStore::cluster(nodes).connect().await?;
///
/// // The same, in one URL.
/// let store = RedisStore::connect("redis+cluster://:secret@10.0.0.1:7000,10.0.0.2:7000").await?;
/// # Ok(()) }
/// ```
impl RedisStore {
    /// A store over a Redis Cluster, of which some nodes are given by a URL each, with one user and
    /// password; the others are found through them.
    pub fn cluster(urls: impl IntoIterator<Item = impl AsRef<str>>) -> RedisStoreBuilder {
        let urls = urls.into_iter().map(|url| url.as_ref().into()).collect();
        RedisStoreBuilder::new(Target::Cluster(urls))
    }
}

impl Cluster {
    pub(super) fn new(
        builder: RedisStoreBuilder,
        infos: Vec<ConnectionInfo>,
        worker: Worker,
    ) -> Result<Self, StoreError> {
        let seeds = url::check(infos)?;
        let like = seeds[0].1.clone();
        let prefix = builder.prefix.clone();
        let (connections, deadline) = (builder.connections, builder.deadline);
        let connect_timeout = builder.connect_timeout;
        Ok(Self {
            topology: Topology::new(builder, like, worker),
            refresh: Refresh::new(),
            seeds,
            prefix,
            connections,
            deadline,
            connect_timeout,
        })
    }

    /// Connects to all primaries. One that cannot be reached is tried again later, if another one can.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<(), StoreError> {
        self.first_map().await?;
        let (mut connected, mut failure) = (false, None);
        for member in self.topology.members() {
            match member.node.slots.connect().await {
                Ok(()) => connected = true,
                Err(error) if error.kind() == StoreErrorKind::Misconfigured => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(error) if !connected => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn acquire(self: &Arc<Self>, hits: &[Hit<'_>]) -> Reply {
        self.begin();
        let first = slot(&self.prefix, hits[0].key);
        if hits[1..].iter().all(|hit| slot(&self.prefix, hit.key) == first) {
            return self.decide(first, Request::new(&self.prefix, hits));
        }
        several::acquire(self, hits)
    }

    /// Decides a request whose states are in one slot.
    fn decide(self: &Arc<Self>, slot: u16, request: Request) -> Reply {
        let cluster = Arc::clone(self);
        match self.topology.member(slot) {
            Some(member) => node::enter(Routed { cluster, member }, request),
            None => Reply::later(async move {
                let call = Call::acquire(std::iter::once(&request));
                let errand = Errand { slot, call: &call, requests: 1 };
                let answer = request.read(&cluster.call(errand, None).await?);
                answer.map_err(|error| cluster.misread(slot, error))
            }),
        }
    }

    pub(super) fn refund(self: &Arc<Self>, refunds: &[Refund<'_>]) -> Reply<()> {
        let groups = self.by_slot(refunds, |refund| refund.key);
        let calls = groups.into_iter().map(|(slot, refunds)| {
            let call = Call::refund(&self.prefix, &refunds);
            (slot, call, Read::Refunded(refunds.len()))
        });
        self.run(calls.collect())
    }

    pub(super) fn reset(self: &Arc<Self>, keys: &[&[u8]]) -> Reply<()> {
        let groups = self.by_slot(keys, |key| key);
        let call = |keys: &[&[u8]]| Call::reset(&self.prefix, keys);
        let calls = groups.into_iter().map(|(slot, keys)| (slot, call(&keys), Read::Forgotten));
        self.run(calls.collect())
    }

    pub(super) fn lateness(&self) -> Duration {
        self.topology.pulse.lateness()
    }

    /// The number of the node that serves a state, 0 while none is known.
    pub(super) fn shard(&self, key: &[u8]) -> u32 {
        self.topology.member(slot(&self.prefix, key)).map_or(0, |member| member.shard)
    }

    /// The address of the node of this number, if there is one.
    pub(super) fn place(&self, shard: u32) -> Option<Arc<str>> {
        let members = self.topology.members();
        members.iter().find(|member| member.shard == shard)?.node.slots.place()
    }

    /// An error for an answer that cannot be, about the node that serves the slot: nobody else runs scripts
    /// for it, but for a moment while it is on its way.
    fn misread(&self, slot: u16, error: StoreError) -> StoreError {
        match self.topology.member(slot) {
            Some(member) => member.node.named(error),
            None => error,
        }
    }

    pub(super) fn close(&self) {
        self.topology.close();
    }

    /// A call begins, on a runtime.
    fn begin(self: &Arc<Self>) {
        pulse::rouse(self);
        if self.refresh.is_due() {
            self.refresh();
        }
    }

    /// What lies in each slot, in the order of what is first in it.
    fn by_slot<'a, T: Copy>(&self, all: &[T], key: impl Fn(T) -> &'a [u8]) -> Vec<(u16, Vec<T>)> {
        let mut groups: Vec<(u16, Vec<T>)> = Vec::new();
        for one in all {
            let slot = slot(&self.prefix, key(*one));
            match groups.iter_mut().find(|(other, _)| *other == slot) {
                Some((_, group)) => group.push(*one),
                None => groups.push((slot, vec![*one])),
            }
        }
        groups
    }

    /// Makes a call for each slot, all at a time, so that a node which fails holds up no other. The error of
    /// the first that fails is that of all.
    fn run(self: &Arc<Self>, calls: Vec<(u16, Call, Read)>) -> Reply<()> {
        self.begin();
        let cluster = Arc::clone(self);
        Reply::later(async move {
            let mut running = JoinSet::new();
            for (at, (slot, call, read)) in calls.into_iter().enumerate() {
                let cluster = Arc::clone(&cluster);
                let handle = cluster.topology.worker.handle();
                running.spawn_on(
                    async move { (at, cluster.run_one(slot, call, read).await) },
                    &handle,
                );
            }
            let mut failure: Option<(usize, StoreError)> = None;
            while let Some(ended) = running.join_next().await {
                let Ok((at, outcome)) = ended else { return Err(abandoned()) };
                if let Err(error) = outcome
                    && failure.as_ref().is_none_or(|(other, _)| at < *other)
                {
                    failure = Some((at, error));
                }
            }
            failure.map_or(Ok(()), |(_, error)| Err(error))
        })
    }

    async fn refund_one(
        self: &Arc<Self>,
        slot: u16,
        refunds: &[Refund<'_>],
    ) -> Result<(), StoreError> {
        let call = Call::refund(&self.prefix, refunds);
        self.run_one(slot, call, Read::Refunded(refunds.len())).await
    }

    async fn run_one(
        self: &Arc<Self>,
        slot: u16,
        call: Call,
        read: Read,
    ) -> Result<(), StoreError> {
        let errand = Errand { slot, call: &call, requests: 1 };
        let answer = read.read(&self.call(errand, None).await?);
        answer.map_err(|error| self.misread(slot, error))
    }
}

/// How an answer is read.
#[derive(Clone, Copy)]
enum Read {
    Refunded(usize),
    Forgotten,
}

impl Read {
    fn read(self, value: &Value) -> Result<(), StoreError> {
        match self {
            Self::Refunded(count) => wire::refunded(value, count),
            Self::Forgotten => wire::forgotten(value),
        }
    }
}

impl Beating for Cluster {
    fn pulse(&self) -> &Pulse {
        &self.topology.pulse
    }

    fn is_busy(&self) -> bool {
        self.topology.any(|member| member.node.gathering.is_busy())
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("prefix", &self.prefix)
            .field("deadline", &self.deadline)
            .field("connections", &self.connections)
            .field("nodes", &self.topology.members().len())
            .finish()
    }
}
