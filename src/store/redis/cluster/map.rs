use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{address::Address, slot::SLOTS};
use crate::store::redis::node::Node;

/// A node of the cluster, and all that goes to it.
pub(super) struct Member {
    pub(super) node: Node,
    pub(super) address: Address,
    /// The number of its address.
    pub(super) shard: u32,
    /// Whether a request was sent here by another node, though no slot may be here yet.
    invited: AtomicBool,
}

impl Member {
    pub(super) fn new(node: Node, address: Address, shard: u32) -> Self {
        Self { node, address, shard, invited: AtomicBool::new(false) }
    }

    pub(super) fn invite(&self) {
        self.invited.store(true, Ordering::Relaxed);
    }
}

/// Which node serves which slot. It is never changed, but replaced.
pub(super) struct Map {
    /// The place of the node of each slot, counted from 1; 0 where there is none.
    places: Box<[u16]>,
    members: Vec<Arc<Member>>,
}

impl Map {
    pub(super) fn empty() -> Self {
        Self { places: vec![0; usize::from(SLOTS)].into(), members: Vec::new() }
    }

    /// A map of these slots, first and last. Of the nodes of `before`, those that serve none go, unless
    /// requests were sent to them since.
    pub(super) fn new(ranges: &[(u16, u16, Arc<Member>)], before: &Self) -> Self {
        let mut map = Self::empty();
        for (first, last, member) in ranges {
            map.assign(*first..=*last, member);
        }
        for member in &before.members {
            if member.invited.swap(false, Ordering::Relaxed) {
                map.place(member);
            }
        }
        map
    }

    /// The same, but for one slot.
    pub(super) fn moved(&self, slot: u16, to: &Arc<Member>) -> Self {
        let mut map = self.with(to);
        map.assign(slot..=slot, to);
        map
    }

    /// The same, with a node that serves no slot yet.
    pub(super) fn with(&self, member: &Arc<Member>) -> Self {
        let mut map = Self { places: self.places.clone(), members: self.members.clone() };
        map.place(member);
        map
    }

    pub(super) fn member(&self, slot: u16) -> Option<&Arc<Member>> {
        let place = *self.places.get(usize::from(slot))?;
        self.members.get(usize::from(place).checked_sub(1)?)
    }

    pub(super) fn at(&self, address: &Address) -> Option<&Arc<Member>> {
        self.members.iter().find(|member| member.address == *address)
    }

    pub(super) fn members(&self) -> &[Arc<Member>] {
        &self.members
    }

    fn assign(&mut self, slots: std::ops::RangeInclusive<u16>, member: &Arc<Member>) {
        let place = self.place(member);
        for slot in slots {
            if let Some(at) = self.places.get_mut(usize::from(slot)) {
                *at = place;
            }
        }
    }

    fn place(&mut self, member: &Arc<Member>) -> u16 {
        let known = self.members.iter().position(|other| Arc::ptr_eq(other, member));
        let at = known.unwrap_or_else(|| {
            self.members.push(Arc::clone(member));
            self.members.len() - 1
        });
        // A cluster has at most as many primaries as slots.
        u16::try_from(at + 1).unwrap_or_default()
    }
}
