//! States kept in this process.

mod shard;

use std::{
    fmt,
    hash::BuildHasher,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use foldhash::quality::RandomState;
use smallvec::SmallVec;

use self::shard::Shard;
use super::{Answer, Hit, Refund, Reply, Store, StoreError, check, check_refunds};
use crate::{
    algorithm::{Meter, Reading},
    decision::{Source, Standing},
    time::{Clock, MonotonicClock, Timestamp},
};

const DEFAULT_CAPACITY: usize = 1_000_000;
const MAX_SHARDS: usize = 64;
/// Fewer entries than this are not worth a lock of their own, and would fill unevenly.
const MIN_SHARD: usize = 512;

/// Keeps the states of limits in the memory of this process, for a single instance, for tests, and
/// for when no shared store answers. Clones share the states.
///
/// It never holds more than its capacity of entries, whatever keys come, and needs no timer to
/// clean up: each new key removes entries that are full again. Where all are in use, those that owe
/// the least are forgotten first, so that a flood of new keys does not free one that is deep in
/// debt.
///
/// ```
/// use tollgate::MemoryStore;
///
/// let store = MemoryStore::builder().capacity(100_000).build();
/// assert!(store.is_empty());
/// ```
#[derive(Clone)]
pub struct MemoryStore(Arc<Inner>);

struct Inner {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    clock: Arc<dyn Clock>,
}

impl MemoryStore {
    /// A store of up to a million entries.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A store with a capacity or a clock of your own.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder { capacity: DEFAULT_CAPACITY, clock: None }
    }

    /// Entries that are held now, those included that are full again but not yet cleaned up.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether no entry is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.0.clock)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("clock", &self.0.clock).finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        Reply::now(self.0.acquire(hits))
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        let checked = check_refunds(refunds);
        if checked.is_ok() {
            refunds.iter().for_each(|refund| self.0.refund(refund));
        }
        Reply::now(checked)
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        for key in keys {
            let hash = self.0.hasher.hash_one(*key);
            lock(&self.0.shards[self.0.place(hash)]).forget(hash, key);
        }
        Reply::now(Ok(()))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn identity(&self) -> Option<usize> {
        Some(Arc::as_ptr(&self.0).addr())
    }
}

impl Inner {
    fn acquire(&self, hits: &[Hit<'_>]) -> Result<Answer, StoreError> {
        check(hits)?;
        let (now, standings) = match hits {
            [hit] => self.decide_one(hit),
            hits => self.decide(hits),
        };
        Ok(Answer { now, source: Source::Memory, standings, found: Vec::new() })
    }

    /// Most requests have one limit: they need not keep lists of locks and readings.
    fn decide_one(&self, hit: &Hit<'_>) -> (Timestamp, Standings) {
        let hash = self.hasher.hash_one(hit.key);
        let mut shard = lock(&self.shards[self.place(hash)]);
        // Read under the lock, so that nobody decides about a state from after its own time.
        let now = self.clock.now();
        let mut standings = Standings::new();
        standings.push(shard.decide(hash, hit, now));
        (now, standings)
    }

    fn decide(&self, hits: &[Hit<'_>]) -> (Timestamp, Standings) {
        let hashes: Few<u64> = hits.iter().map(|hit| self.hasher.hash_one(hit.key)).collect();
        let mut locked = self.lock(&hashes);
        let now = self.clock.now();
        let (mut admitted, mut fits) = (true, true);
        let mut readings: Few<Reading> = SmallVec::new();
        for (hit, hash) in hits.iter().zip(&hashes) {
            let shard = self.shard(&mut locked, *hash);
            let mut found = hit.meter.read(shard.settled(*hash, hit.key, &hit.meter, now), now);
            if hit.meter.guards() && !fits {
                shard.denied(*hash, hit.key, &hit.meter, &mut found, now);
            }
            fits = hit.meter.fits(found, hit.cost, now);
            admitted &= hit.shadow || fits;
            readings.push(found);
        }
        let mut standings = Standings::new();
        for ((hit, hash), found) in hits.iter().zip(&hashes).zip(readings) {
            let admitted = admitted && (!hit.shadow || hit.meter.fits(found, hit.cost, now));
            let shard = self.shard(&mut locked, *hash);
            standings.push(charge(shard, *hash, hit, found, admitted, now));
        }
        (now, standings)
    }

    fn refund(&self, refund: &Refund<'_>) {
        let Refund { key, meter, units, stamp } = refund;
        let hash = self.hasher.hash_one(*key);
        let mut shard = lock(&self.shards[self.place(hash)]);
        let now = self.clock.now();
        shard.settled(hash, key, meter, now);
        shard.adjust(hash, key, meter, |state| meter.refund(state, *units, *stamp, now));
    }

    /// Locks the shards of all hits in one order, so that two requests never wait for each other.
    fn lock(&self, hashes: &[u64]) -> Locked<'_> {
        let mut wanted: Few<usize> = hashes.iter().map(|hash| self.place(*hash)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut locked = Locked::new();
        for at in wanted {
            locked.push((at, lock(&self.shards[at])));
        }
        locked
    }

    fn shard<'a>(&self, locked: &'a mut Locked<'_>, hash: u64) -> &'a mut Shard {
        let place = self.place(hash);
        let at = locked.iter().position(|(at, _)| *at == place).unwrap_or_default();
        &mut locked[at].1
    }

    /// The shard of a hash: by bits that the tables inside do not use.
    const fn place(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.shards.len() - 1)
    }
}

/// Charges a hit, if it is admitted; where its key then stands.
fn charge(
    shard: &mut Shard,
    hash: u64,
    hit: &Hit<'_>,
    found: Reading,
    admitted: bool,
    now: Timestamp,
) -> Standing {
    let Hit { key, meter, cost, .. } = hit;
    let found = match meter {
        Meter::SlidingLog(_) => {
            meter.foresee(found, shard.settled(hash, key, meter, now), *cost, admitted, now)
        }
        _ => found,
    };
    if admitted && *cost > 0 && !meter.guards() {
        shard.change(hash, key, meter, now, |state| meter.charge(state, found, *cost, now));
    }
    meter.standing(found, *cost, admitted, now)
}

type Standings = SmallVec<[Standing; 2]>;

/// What there is one of for each hit.
type Few<T> = SmallVec<[T; 4]>;

type Locked<'a> = SmallVec<[(usize, MutexGuard<'a, Shard>); 2]>;

/// Nothing panics while a shard is locked, and a shard is whole after every step; so a poisoned
/// lock, should there be one, is as good as any.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds a [`MemoryStore`].
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryStoreBuilder {
    capacity: usize,
    clock: Option<Arc<dyn Clock>>,
}

impl MemoryStoreBuilder {
    /// Holds at most this many entries. Default: one million.
    ///
    /// # Panics
    ///
    /// If `entries` is 0 or above 2^32.
    pub fn capacity(mut self, entries: usize) -> Self {
        assert!(
            entries >= 1,
            "a store of 0 entries limits nothing: the capacity must be at least 1"
        );
        assert!(
            u32::try_from(entries).is_ok(),
            "a capacity of {entries} entries: it must be below {}",
            u64::from(u32::MAX) + 1
        );
        self.capacity = entries;
        self
    }

    /// Takes the time from `clock`, such as a [`ManualClock`](crate::ManualClock) in tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// The store.
    #[must_use]
    pub fn build(self) -> MemoryStore {
        let shards = largest_power_of_two(self.capacity / MIN_SHARD).clamp(1, MAX_SHARDS);
        let shard = || Mutex::new(Shard::new(self.capacity / shards));
        MemoryStore(Arc::new(Inner {
            shards: std::iter::repeat_with(shard).take(shards).collect(),
            hasher: RandomState::default(),
            clock: self.clock.unwrap_or_else(|| Arc::new(MonotonicClock::new())),
        }))
    }
}

const fn largest_power_of_two(up_to: usize) -> usize {
    match up_to.checked_ilog2() {
        Some(log) => 1 << log,
        None => 0,
    }
}
