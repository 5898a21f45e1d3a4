use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use smallvec::SmallVec;

use super::Desk;
use crate::{
    accel::{DenyCache, Leases},
    algorithm::{Lock, Meter},
    decision::{Locked, Stamp, Standing},
    store::{Answer, Hit, Refund, Reply, Store, StoreError, StoreErrorKind},
};

/// What a store is asked for one request, and later what it has charged.
#[derive(Debug, Default)]
pub(super) struct Ask {
    /// The names of all states, one behind the other.
    names: Names,
    states: SmallVec<[State; 2]>,
    /// When the store was asked, by the clock of what remembers its denials.
    asked: u64,
}

pub(super) type Names = SmallVec<[u8; 128]>;

/// A state, with the lock that guards it.
#[derive(Debug)]
struct State {
    start: usize,
    end: usize,
    meter: Meter,
    lock: Option<Box<Guard>>,
    cost: u64,
    shadow: bool,
    lease: u64,
    /// Units that were charged, and not given back yet.
    units: AtomicU64,
    stamp: Stamp,
}

#[derive(Clone, Copy, Debug)]
struct Guard {
    lock: Lock,
    status: StatusCode,
    /// Where its name ends; it begins where that of the state ends.
    end: usize,
}

/// Where a state stands, and whether it is locked.
pub(super) type Found = SmallVec<[(Standing, Option<Locked>); 2]>;

impl Ask {
    /// Forgets all states.
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.states.clear();
    }

    /// Adds a state, whose name is written by `name`.
    pub(super) fn push(
        &mut self,
        (meter, cost, shadow, lease): (Meter, u64, bool, u64),
        name: impl FnOnce(&mut Names),
    ) {
        let start = self.names.len();
        name(&mut self.names);
        self.states.push(State {
            start,
            end: self.names.len(),
            meter,
            lock: None,
            cost,
            shadow,
            lease,
            units: AtomicU64::new(0),
            stamp: Stamp::default(),
        });
    }

    /// Guards the state that was added last by a lock, whose name is written by `name`.
    pub(super) fn guard(
        &mut self,
        (lock, status): (Lock, StatusCode),
        name: impl FnOnce(&mut Names),
    ) {
        name(&mut self.names);
        if let Some(state) = self.states.last_mut() {
            let end = self.names.len();
            state.lock = Some(Box::new(Guard { lock, status, end }));
        }
    }

    /// The state at this place of another ask, which is now to take `cost` units.
    pub(super) fn push_again(&mut self, other: &Self, at: usize, cost: u64) {
        let state = &other.states[at];
        self.push((state.meter, cost, state.shadow, state.lease), |names| {
            names.extend_from_slice(other.name(state));
        });
        if let Some(Guard { lock, status, end }) = state.lock.as_deref().copied() {
            let name = &other.names[state.end..end];
            self.guard((lock, status), |names| names.extend_from_slice(name));
        }
    }

    /// Whether it is about a state of this name.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.states.iter().any(|state| self.name(state) == name)
    }

    /// Units that were charged to the state at this place, and not given back.
    pub(super) fn charged(&self, at: usize) -> u64 {
        self.states.get(at).map_or(0, |state| state.units.load(Ordering::Relaxed))
    }

    /// The name of the state that was added last.
    pub(super) fn last_name(&self) -> &[u8] {
        self.states.last().map_or(&[], |state| self.name(state))
    }

    /// Makes the state that was added last one that is only looked at.
    pub(super) fn only_look(&mut self) {
        if let Some(state) = self.states.last_mut() {
            state.cost = 0;
        }
    }

    /// Asks the store, unless the units are here, or it is known to deny this.
    pub(super) fn acquire(&mut self, desk: Desk<'_>) -> Reply {
        let Desk { store, leases, cache, closed } = desk;
        self.asked = cache.map_or(0, DenyCache::now);
        let hits = self.hits();
        let leases = leases.filter(|_| Leases::serve(&hits));
        if let Some(answer) = leases.and_then(|leases| leases.admit(&hits)) {
            return Reply::now(Ok(answer));
        }
        if let Some(denial) = cache.and_then(|cache| cache.denied(&hits, self.asked)) {
            return Reply::now(Ok(denial));
        }
        match leases {
            Some(leases) if closed => leases.acquire(&hits),
            // An open breaker answers at once, without a task.
            _ => store.acquire(&hits),
        }
    }

    /// Has `cache` take note of the store's answer.
    pub(super) fn teach(&self, cache: &DenyCache, answer: &Answer) {
        if !answer.found.is_empty() || !cache.is_empty() {
            cache.learn(&self.hits(), answer, self.asked);
        }
    }

    fn hits(&self) -> SmallVec<[Hit<'_>; 2]> {
        let mut hits = SmallVec::new();
        for state in &self.states {
            let State { meter, cost, shadow, lease, .. } = *state;
            hits.push(Hit { key: self.name(state), meter, cost, shadow, lease });
            if let Some(Guard { lock, end, .. }) = state.lock.as_deref().copied() {
                let key = &self.names[state.end..end];
                hits.push(Hit::new(key, Meter::Lock(lock), cost));
            }
        }
        hits
    }

    /// An answer of a store, which may be anybody's, if it fits what was asked.
    pub(super) fn verify(&self, answer: Result<Answer, StoreError>) -> Result<Answer, StoreError> {
        let answer = answer?;
        let locks = self.states.iter().filter(|state| state.lock.is_some()).count();
        if answer.standings.len() == self.states.len() + locks {
            return Ok(answer);
        }
        Err(StoreError::new(
            StoreErrorKind::Unexpected,
            "the store answered for another number of limits",
        ))
    }

    /// Where each state stands, by a verified answer. Takes note of what was charged.
    pub(super) fn read(&mut self, answer: &Answer) -> Found {
        let mut standings = answer.standings.iter().copied();
        let mut found = Found::new();
        let mut admitted = true;
        for state in &self.states {
            let Some(mut standing) = standings.next() else { break };
            let locked = state
                .lock
                .as_ref()
                .and_then(|guard| locked(guard, standings.next()?, &mut standing));
            admitted &= state.shadow || standing.fits;
            found.push((standing, locked));
        }
        for (state, (standing, _)) in self.states.iter_mut().zip(&found) {
            // Who took something has to wait for it. A shadow whose key holds something else does not.
            let charged = admitted && standing.fits && standing.reset > 0;
            let charged = if charged { state.cost } else { 0 };
            state.units = AtomicU64::new(charged);
            state.stamp = standing.stamp;
        }
        found
    }

    /// Takes from what was charged to the states at these places, up to `units` of each, and has it
    /// given back. Whoever takes it has it: nothing is given back twice. None, if there was nothing
    /// to take.
    pub(super) fn refund(
        &self,
        at: impl Iterator<Item = usize>,
        units: u64,
        store: &dyn Store,
    ) -> Option<Reply<()>> {
        let mut refunds = SmallVec::<[Refund<'_>; 4]>::new();
        for state in at.map(|at| &self.states[at]) {
            let left = |charged: u64| Some(charged.saturating_sub(units));
            let before = state.units.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
            let before = before.unwrap_or_default();
            let units = before.min(units);
            if units > 0 {
                let State { meter, stamp, cost, .. } = *state;
                let stamp = meter.rest(stamp, cost - before);
                refunds.push(Refund { key: self.name(state), meter, units, stamp });
            }
        }
        (!refunds.is_empty()).then(|| store.refund(&refunds))
    }

    /// Has `cache` forget the state at this place.
    pub(super) fn forget(&self, at: usize, cache: &DenyCache) {
        cache.forget(self.name(&self.states[at]));
    }

    fn name(&self, state: &State) -> &[u8] {
        &self.names[state.start..state.end]
    }
}

/// Whether a key is locked. It then stands as its lock does.
fn locked(guard: &Guard, lock: Standing, standing: &mut Standing) -> Option<Locked> {
    if lock.remaining > 0 {
        return None;
    }
    let left = lock.reset;
    standing.fits &= lock.fits;
    standing.remaining = 0;
    // What never passes does not pass after the lock.
    standing.wait = standing.wait.map(|wait| wait.max(left));
    standing.reset = standing.reset.max(left);
    Some(Locked { left, status: guard.status })
}
