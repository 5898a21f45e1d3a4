use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use smallvec::SmallVec;

use crate::{
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
}

pub(super) type Names = SmallVec<[u8; 128]>;

/// A state, with the lock that guards it.
#[derive(Debug)]
struct State {
    start: usize,
    end: usize,
    meter: Meter,
    lock: Option<Guard>,
    cost: u64,
    shadow: bool,
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
    /// Adds a state, whose name is written by `name`.
    pub(super) fn push(
        &mut self,
        meter: Meter,
        cost: u64,
        shadow: bool,
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
            state.lock = Some(Guard { lock, status, end: self.names.len() });
        }
    }

    /// The state at this place of another ask, which is now to take `cost` units.
    pub(super) fn push_again(&mut self, other: &Self, at: usize, cost: u64) {
        let state = &other.states[at];
        self.push(state.meter, cost, state.shadow, |names| {
            names.extend_from_slice(other.name(state));
        });
        if let Some(Guard { lock, status, end }) = state.lock {
            let name = &other.names[state.end..end];
            self.guard((lock, status), |names| names.extend_from_slice(name));
        }
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

    pub(super) fn acquire(&self, store: &dyn Store) -> Reply {
        let mut hits = SmallVec::<[Hit<'_>; 4]>::new();
        for state in &self.states {
            let State { meter, cost, shadow, .. } = *state;
            hits.push(Hit { key: self.name(state), meter, cost, shadow });
            if let Some(Guard { lock, end, .. }) = state.lock {
                let key = &self.names[state.end..end];
                hits.push(Hit { key, meter: Meter::Lock(lock), cost, shadow: false });
            }
        }
        store.acquire(&hits)
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
            let locked =
                state.lock.and_then(|guard| locked(guard, standings.next()?, &mut standing));
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

    fn name(&self, state: &State) -> &[u8] {
        &self.names[state.start..state.end]
    }
}

/// Whether a key is locked. It then stands as its lock does.
fn locked(guard: Guard, lock: Standing, standing: &mut Standing) -> Option<Locked> {
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
