use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use deadpool_redis::redis::ConnectionInfo;
use tokio::sync::Notify;

use super::{
    address::Address,
    map::{Map, Member},
    numbers::Numbers,
    told::Range,
};
use crate::{
    store::{
        StoreError,
        redis::{
            RedisStoreBuilder,
            origin::{Origin, Server},
            pulse::Pulse,
            worker::Worker,
        },
    },
    time::MonotonicClock,
};

/// The nodes of a cluster, and who serves what. Whoever reads never waits for who writes.
pub(super) struct Topology {
    map: ArcSwap<Map>,
    /// Held to write.
    writing: Mutex<Writing>,
    /// Something is known that was not known before: a map, or why there is none.
    pub(super) changed: Notify,
    builder: RedisStoreBuilder,
    /// How nodes are connected to, but for their address.
    like: ConnectionInfo,
    pub(super) worker: Worker,
    pub(super) pulse: Arc<Pulse>,
    clock: MonotonicClock,
}

#[derive(Default)]
struct Writing {
    numbers: Numbers<Address>,
    closed: bool,
}

impl Topology {
    pub(super) fn new(builder: RedisStoreBuilder, like: ConnectionInfo, worker: Worker) -> Self {
        Self {
            map: ArcSwap::from_pointee(Map::empty()),
            writing: Mutex::default(),
            changed: Notify::new(),
            builder,
            like,
            worker,
            pulse: Arc::new(Pulse::new()),
            clock: MonotonicClock::new(),
        }
    }

    /// The node that serves a slot.
    pub(super) fn member(&self, slot: u16) -> Option<Arc<Member>> {
        self.map.load().member(slot).cloned()
    }

    pub(super) fn members(&self) -> Vec<Arc<Member>> {
        self.map.load().members().to_vec()
    }

    /// Whether anything is true of one of the nodes.
    pub(super) fn any(&self, of: impl Fn(&Member) -> bool) -> bool {
        self.map.load().members().iter().any(|member| of(member))
    }

    /// A slot was moved to this address.
    pub(super) fn moved(&self, slot: u16, to: &Address) -> Result<Arc<Member>, StoreError> {
        let mut writing = self.write();
        let map = self.map.load_full();
        let member = self.found(&map, &mut writing, to)?;
        member.invite();
        if !map.member(slot).is_some_and(|known| Arc::ptr_eq(known, &member)) {
            self.map.store(Arc::new(map.moved(slot, &member)));
        }
        Ok(member)
    }

    /// The node at this address, to which a request is sent by another.
    pub(super) fn invited(&self, to: &Address) -> Result<Arc<Member>, StoreError> {
        let mut writing = self.write();
        let map = self.map.load_full();
        let member = self.found(&map, &mut writing, to)?;
        member.invite();
        if map.at(to).is_none() {
            self.map.store(Arc::new(map.with(&member)));
        }
        Ok(member)
    }

    /// Who serves what was told. Nodes that left are closed when their requests have ended.
    pub(super) fn replace(&self, ranges: &[Range]) -> Result<(), StoreError> {
        let mut writing = self.write();
        let map = self.map.load_full();
        let mut known: HashMap<&Address, Arc<Member>> = HashMap::new();
        let mut found = Vec::with_capacity(ranges.len());
        for (first, last, address) in ranges {
            let member = match known.get(address) {
                Some(member) => Arc::clone(member),
                None => self.found(&map, &mut writing, address)?,
            };
            known.insert(address, Arc::clone(&member));
            found.push((*first, *last, member));
        }
        let next = Map::new(&found, &map);
        writing.numbers.stay(|address| next.at(address).is_some(), self.clock.elapsed());
        self.map.store(Arc::new(next));
        Ok(())
    }

    /// No connection is made any more.
    pub(super) fn close(&self) {
        self.write().closed = true;
        self.map.load().members().iter().for_each(|member| member.node.slots.close());
        self.changed.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.write().closed
    }

    fn found(
        &self,
        map: &Map,
        writing: &mut Writing,
        address: &Address,
    ) -> Result<Arc<Member>, StoreError> {
        if let Some(member) = map.at(address) {
            return Ok(Arc::clone(member));
        }
        let info = address.like(&self.like);
        let origin = Origin::Server(Server::new(info, self.builder.connections)?);
        let node = self.builder.node(origin, self.worker.clone(), Arc::clone(&self.pulse));
        if writing.closed {
            node.slots.close();
        }
        let shard = writing.numbers.of(address, self.clock.elapsed());
        Ok(Arc::new(Member::new(node, address.clone(), shard)))
    }

    fn write(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
