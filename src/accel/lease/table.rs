use std::{
    hash::BuildHasher,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::holding::{Holding, Lease, Taken};
use crate::store::Hit;

const SHARDS: usize = 16;
/// Keys of a shard, at most. Of others, nothing is charged ahead.
const SHARD: usize = 4_096;

/// What each key has on lease, and how fast it uses it.
#[derive(Debug)]
pub(super) struct Table {
    shards: [Mutex<HashTable<Holding>>; SHARDS],
    hasher: RandomState,
    len: AtomicUsize,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
            len: AtomicUsize::new(0),
        }
    }
}

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// Uses units that are here, and says whether it is time to ask for more.
    pub(super) fn take(&self, hit: &Hit<'_>, now: u64) -> Option<(Taken, bool)> {
        self.with(hit.key, |holding| {
            // Leases of another limit are let go of when they are idle.
            let taken = (holding.meter == hit.meter).then(|| holding.take(hit.cost, now))??;
            Some((taken, holding.runs_low()))
        })?
    }

    pub(super) fn put_back(&self, key: &[u8], taken: &Taken) {
        self.with(key, |holding| holding.put_back(taken));
    }

    /// Units to ask the store for. None, if somebody else is asking, or there are too many keys.
    pub(super) fn ask(&self, hit: &Hit<'_>, now: u64) -> Option<u64> {
        let hash = self.hasher.hash_one(hit.key);
        let mut shard = self.shard(hash);
        let full = shard.len() >= SHARD;
        let found = shard.find_mut(hash, |holding| *holding.key == *hit.key);
        let holding = match found {
            Some(holding) => holding,
            None if full => return None,
            None => {
                self.len.fetch_add(1, Ordering::Relaxed);
                let holding = Holding::new(hit.key, hit.meter, now);
                let hash_of = |holding: &Holding| self.hasher.hash_one(&*holding.key);
                shard.insert_unique(hash, holding, hash_of).into_mut()
            }
        };
        if holding.meter != hit.meter || holding.is_renewing() {
            return None;
        }
        holding.renewing(true);
        Some(holding.ask(hit.cost, hit.lease, now))
    }

    /// Somebody who asked has an answer.
    pub(super) fn asked(&self, key: &[u8]) {
        self.with(key, |holding| holding.renewing(false));
    }

    /// The store had less than was asked for.
    pub(super) fn shrink(&self, key: &[u8]) {
        self.with(key, Holding::shrink);
    }

    pub(super) fn keep(&self, key: &[u8], lease: Lease) {
        self.with(key, |holding| holding.keep(lease));
    }

    pub(super) fn remove(&self, key: &[u8]) -> Option<Holding> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash);
        let entry = shard.find_entry(hash, |holding| *holding.key == *key).ok()?;
        self.len.fetch_sub(1, Ordering::Relaxed);
        Some(entry.remove().0)
    }

    /// Removes those that nobody has used for so many microseconds.
    pub(super) fn take_idle(&self, now: u64, idle: u64) -> Vec<Holding> {
        let mut taken = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            taken.extend(shard.extract_if(|holding| {
                holding.left(now);
                holding.is_idle(now, idle)
            }));
        }
        self.len.fetch_sub(taken.len(), Ordering::Relaxed);
        taken
    }

    fn with<T>(&self, key: &[u8], change: impl FnOnce(&mut Holding) -> T) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash);
        shard.find_mut(hash, |holding| *holding.key == *key).map(change)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, HashTable<Holding>> {
        // By bits that the tables inside do not use.
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
