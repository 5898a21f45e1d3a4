use hashbrown::HashTable;

use crate::{
    algorithm::{Meter, Reading, State},
    decision::Standing,
    store::Hit,
    time::Timestamp,
};

/// Entries that a new key looks at, to remove those that are full again: more than one, so that
/// cleaning outruns growing.
const SWEEP: usize = 2;

/// A bounded table of states.
#[derive(Debug)]
pub(super) struct Shard {
    capacity: usize,
    entries: Vec<Entry>,
    /// Positions in `entries`.
    index: HashTable<u32>,
    /// Where cleaning goes on.
    cursor: usize,
}

struct Entry {
    hash: u64,
    key: Box<[u8]>,
    state: State,
    /// The moment from which the state says no more than none, in microseconds.
    fresh_at: u64,
}

/// Keys may name people.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state.fmt(f)
    }
}

impl Entry {
    /// Whether forgetting it changes nothing.
    const fn is_fresh(&self, now: Timestamp) -> bool {
        self.fresh_at <= now.as_micros()
    }
}

impl Shard {
    /// A table of at most `capacity` entries, below 2^32.
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, entries: Vec::new(), index: HashTable::new(), cursor: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Decides about a hit that is the only one of its request, and no lock.
    pub(super) fn decide(&mut self, hash: u64, hit: &Hit<'_>, now: Timestamp) -> Standing {
        let Hit { key, meter, cost, .. } = hit;
        if let Some(entry) = self.entry(hash, key) {
            let (standing, fresh_at) = meter.decide(&mut entry.state, *cost, now);
            if let Some(fresh_at) = fresh_at {
                entry.fresh_at = fresh_at;
            }
            return standing;
        }
        let mut state = meter.empty();
        let (standing, charged) = meter.decide(&mut state, *cost, now);
        if charged.is_some() {
            self.insert(hash, key, meter, state, now);
        }
        standing
    }

    /// The state of a key, brought to `now`.
    pub(super) fn settled(
        &mut self,
        hash: u64,
        key: &[u8],
        meter: &Meter,
        now: Timestamp,
    ) -> Option<&State> {
        let entry = self.entry(hash, key)?;
        if meter.settle(&mut entry.state, now) {
            entry.fresh_at = meter.fresh_at(&entry.state);
        }
        Some(&entry.state)
    }

    /// Counts at a lock that the hit before it did not fit.
    pub(super) fn denied(
        &mut self,
        hash: u64,
        key: &[u8],
        meter: &Meter,
        found: &mut Reading,
        now: Timestamp,
    ) {
        // A locked key is left as it is.
        let mut state = meter.empty();
        if meter.deny(&mut state, found, now) {
            self.change(hash, key, meter, now, |kept| *kept = state);
        }
    }

    /// Changes the state of a key, if there is one, and the change says that it changed.
    pub(super) fn adjust(
        &mut self,
        hash: u64,
        key: &[u8],
        meter: &Meter,
        change: impl FnOnce(&mut State) -> bool,
    ) {
        if let Some(entry) = self.entry(hash, key)
            && change(&mut entry.state)
        {
            entry.fresh_at = meter.fresh_at(&entry.state);
        }
    }

    /// Forgets a key.
    pub(super) fn forget(&mut self, hash: u64, key: &[u8]) {
        if let Some(at) = self.place(hash, key) {
            self.remove(at);
        }
    }

    /// Changes the state of a key, which is new if there is none.
    pub(super) fn change(
        &mut self,
        hash: u64,
        key: &[u8],
        meter: &Meter,
        now: Timestamp,
        change: impl FnOnce(&mut State),
    ) {
        if let Some(entry) = self.entry(hash, key) {
            change(&mut entry.state);
            entry.fresh_at = meter.fresh_at(&entry.state);
            return;
        }
        let mut state = meter.empty();
        change(&mut state);
        self.insert(hash, key, meter, state, now);
    }

    fn insert(&mut self, hash: u64, key: &[u8], meter: &Meter, state: State, now: Timestamp) {
        for _ in 0..SWEEP {
            self.sweep(now);
        }
        if self.entries.len() >= self.capacity {
            self.evict(now);
        }
        let Ok(at) = u32::try_from(self.entries.len()) else { return };
        let fresh_at = meter.fresh_at(&state);
        self.entries.push(Entry { hash, key: key.into(), state, fresh_at });
        self.index.insert_unique(hash, at, |at| self.entries[*at as usize].hash);
    }

    fn entry(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        let at = self.place(hash, key)?;
        self.entries.get_mut(at)
    }

    fn place(&self, hash: u64, key: &[u8]) -> Option<usize> {
        self.index.find(hash, |at| *self.entries[*at as usize].key == *key).map(|at| *at as usize)
    }

    /// Looks at the next entry, and removes it if it is full again.
    fn sweep(&mut self, now: Timestamp) {
        if self.cursor >= self.entries.len() {
            self.cursor = 0;
        }
        match self.entries.get(self.cursor) {
            Some(entry) if entry.is_fresh(now) => self.remove(self.cursor),
            _ => self.cursor += 1,
        }
    }

    fn remove(&mut self, at: usize) {
        let (removed, last) = (self.entries[at].hash, self.entries.len() - 1);
        if let Ok(found) = self.index.find_entry(removed, |place| *place as usize == at) {
            found.remove();
        }
        if at < last {
            let moved =
                self.index.find_mut(self.entries[last].hash, |place| *place as usize == last);
            if let (Some(place), Ok(at)) = (moved, u32::try_from(at)) {
                *place = at;
            }
        }
        self.entries.swap_remove(at);
    }

    /// Makes room for several entries at once: all that are full again go, and if they are few, then
    /// those that owe the least.
    fn evict(&mut self, now: Timestamp) {
        self.entries.retain(|entry| !entry.is_fresh(now));
        let room = (self.capacity / 16).max(1);
        let surplus = (self.entries.len() + room).saturating_sub(self.capacity);
        if surplus > 0 {
            let mut owed: Vec<u64> = self.entries.iter().map(|entry| entry.fresh_at).collect();
            let (_, limit, _) = owed.select_nth_unstable(surplus - 1);
            let limit = *limit;
            let below = self.entries.iter().filter(|entry| entry.fresh_at < limit).count();
            let mut ties = surplus - below;
            self.entries.retain(|entry| {
                let goes = entry.fresh_at < limit || (entry.fresh_at == limit && ties > 0);
                ties -= usize::from(goes && entry.fresh_at == limit);
                !goes
            });
        }
        self.index.clear();
        for (at, entry) in (0..).zip(&self.entries) {
            self.index.insert_unique(entry.hash, at, |at: &u32| self.entries[*at as usize].hash);
        }
    }
}
