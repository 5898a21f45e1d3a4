use std::{
    hash::BuildHasher,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::{
    algorithm::{Meter, Reading},
    decision::Source,
    store::{Answer, Hit},
    time::{Clock, Timestamp, micros},
};

const SHARDS: usize = 16;
/// Entries of a shard, at most.
const SHARD: usize = 1_024;

/// Remembers what was denied, and denies it again without asking the store, until it may have changed.
///
/// What is kept is what the store found, not that it denied: whether a request fits then is decided by
/// the same arithmetic as in the store. Time counts from when the store was *asked*, so it is never
/// denied for longer than the store would; and what is told counts from when it was *heard*, so that
/// nobody waits for less than it has to. What others give back or reset meanwhile is not seen, so nothing
/// is kept for longer than a set time.
#[derive(Debug)]
pub(crate) struct DenyCache {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    clock: Arc<dyn Clock>,
    /// Microseconds for which an answer counts.
    longest: u64,
    /// Entries in all shards: while nothing is denied, nothing is looked up.
    len: AtomicUsize,
}

#[derive(Debug, Default)]
struct Shard {
    entries: HashTable<Entry>,
    /// When a key was forgotten last: what was asked before that is not learned any more.
    forgotten: u64,
}

struct Entry {
    key: Box<[u8]>,
    meter: Meter,
    cost: u64,
    /// None, if it has changed since.
    found: Option<Reading>,
    /// When it was found, by the store's clock.
    then: Timestamp,
    /// When the store was asked, by this process's clock.
    asked: u64,
    /// When it was heard, by the same.
    heard: u64,
}

/// What is known of a hit, and the times of that, by the store's clock.
#[derive(Clone, Copy)]
struct Known {
    /// The latest that it may be there: by this it is decided.
    decides: (Reading, Timestamp),
    /// The earliest: this is told.
    told: (Reading, Timestamp),
}

/// Keys may name people.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.found.fmt(f)
    }
}

impl Entry {
    /// What it comes to at `now`, by this process's clock. None, if it does not say what a hit of this
    /// meter and cost finds.
    fn known(&self, meter: &Meter, cost: u64, now: u64) -> Option<Known> {
        if self.meter != *meter || (matches!(meter, Meter::SlidingLog(_)) && cost != self.cost) {
            return None;
        }
        let found = self.found?;
        let later = |since: u64| {
            let passed = Duration::from_micros(now.saturating_sub(since));
            let now = self.then.saturating_add(passed);
            Some((meter.later(found, self.then, now)?, now))
        };
        Some(Known { decides: later(self.asked)?, told: later(self.heard)? })
    }

    const fn is_over(&self, now: u64, longest: u64) -> bool {
        now.saturating_sub(self.asked) >= longest
    }
}

impl DenyCache {
    /// A cache whose entries count for `longest`.
    pub(crate) fn new(clock: Arc<dyn Clock>, longest: Duration) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::default(),
            clock,
            longest: micros(longest),
            len: AtomicUsize::new(0),
        }
    }

    /// The moment of asking the store, for [`learn`](Self::learn).
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// The denial of a request at `now`, if what is known of one of its hits denies it. The others stand
    /// as they did when they were denied together, or, where nothing is known, as if nothing was taken:
    /// who comes with a new key each time is not asked about either.
    pub(crate) fn denied(&self, hits: &[Hit<'_>], now: u64) -> Option<Answer> {
        if self.is_empty() {
            return None;
        }
        // Denials that a lock counts have to be made by the store.
        let locks = hits.iter().any(|hit| hit.meter.guards());
        let mut all = SmallVec::<[Option<Known>; 4]>::new();
        let (mut denied, mut fitted) = (None, true);
        for hit in hits {
            let known = self.find(hit, now)?;
            let fits = known.is_none_or(|Known { decides: (found, then), .. }| {
                hit.meter.fits(found, hit.cost, then)
            });
            if hit.meter.guards() && fits && !fitted {
                return None;
            }
            if !fits && !hit.shadow && (hit.meter.guards() || !locks) {
                denied = known.map(|known| known.told.1);
            }
            fitted = fits;
            all.push(known);
        }
        let now = denied?;
        let standing = |(hit, known): (&Hit<'_>, Option<Known>)| {
            let unknown = || (hit.meter.read(None, now), now);
            let (found, then) = known.map_or_else(unknown, |known| known.told);
            hit.meter.standing(found, hit.cost, false, then)
        };
        let standings = hits.iter().zip(all).map(standing).collect();
        Some(Answer { now, source: Source::Cache, standings, found: Vec::new() })
    }

    /// Takes note of what a store, asked at `asked`, found when it denied a request. Without that, the
    /// request may have been charged: what was known before has changed.
    pub(crate) fn learn(&self, hits: &[Hit<'_>], answer: &Answer, asked: u64) {
        if answer.found.is_empty() {
            for hit in hits.iter().filter(|hit| hit.cost > 0) {
                self.change(&mut self.shard(self.hash(hit.key)), hit.key, asked);
            }
        }
        let heard = self.now();
        for (hit, found) in hits.iter().zip(&answer.found) {
            let Hit { key, meter, cost, .. } = *hit;
            let (key, found, then) = (key.into(), Some(*found), answer.now);
            self.keep(Entry { key, meter, cost, found, then, asked, heard });
        }
    }

    /// Forgets a key, which was reset or given something back.
    pub(crate) fn forget(&self, key: &[u8]) {
        let now = self.now();
        let mut shard = self.shard(self.hash(key));
        shard.forgotten = now;
        self.change(&mut shard, key, now);
    }

    /// That what was known is over is worth knowing: the store then is asked about the key.
    fn change(&self, shard: &mut Shard, key: &[u8], asked: u64) {
        let entry = shard.entries.find_mut(self.hash(key), |entry| *entry.key == *key);
        if let Some(entry) = entry.filter(|entry| entry.asked <= asked) {
            (entry.found, entry.asked) = (None, asked);
        }
    }

    /// What is known of a hit at `now`. None, if it is something else than what this hit would find.
    fn find(&self, hit: &Hit<'_>, now: u64) -> Option<Option<Known>> {
        let hash = self.hash(hit.key);
        let mut shard = self.shard(hash);
        let Ok(entry) = shard.entries.find_entry(hash, |entry| *entry.key == *hit.key) else {
            return Some(None);
        };
        if entry.get().is_over(now, self.longest) {
            entry.remove();
            self.len.fetch_sub(1, Ordering::Relaxed);
            return Some(None);
        }
        entry.get().known(&hit.meter, hit.cost, now).map(Some)
    }

    fn keep(&self, entry: Entry) {
        let hash = self.hash(&entry.key);
        let mut shard = self.shard(hash);
        let Shard { entries, forgotten } = &mut *shard;
        if entry.asked <= *forgotten {
            return;
        }
        let before = entries.len();
        if let Some(known) = entries.find_mut(hash, |known| known.key == entry.key) {
            // Answers may overtake each other.
            if known.asked <= entry.asked {
                *known = entry;
            }
            return;
        }
        if before >= SHARD {
            let now = self.now();
            entries.retain(|entry| !entry.is_over(now, self.longest));
            if entries.len() >= SHARD {
                // They are only worth a trip to the store each.
                entries.clear();
            }
        }
        entries.insert_unique(hash, entry, |entry| self.hash(&entry.key));
        self.len.fetch_add(entries.len().wrapping_sub(before), Ordering::Relaxed);
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // By bits that the tables inside do not use.
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
