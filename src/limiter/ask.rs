use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::StatusCode;
use smallvec::SmallVec;

use super::Desk;
use crate::{
    accel::{DenyCache, Leases},
    algorithm::{Lock, Meter},
    decision::{Locked, Stamp, Standing},
    policy::{Limit, Variant},
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

type Names = SmallVec<[u8; 96]>;

/// Which limit a state is of, and which key.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The place of the limit.
    pub(super) limit: usize,
    /// The place of the key, among those of the limit.
    pub(super) key: usize,
    /// The limit of another quota, which applies to this key instead.
    pub(super) instead: Option<Arc<Variant>>,
}

impl Place {
    pub(super) const fn new(limit: usize, key: usize) -> Self {
        Self { limit, key, instead: None }
    }
}

/// A state, with the lock that guards it.
#[derive(Debug)]
struct State {
    place: Place,
    start: usize,
    end: usize,
    /// Where the key stands, in the name.
    key: Range<usize>,
    meter: Meter,
    lock: Option<Box<Guard>>,
    /// Units that the request costs.
    cost: u64,
    /// Whether they were taken before, so that it is only looked at.
    looks: bool,
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

impl Ask {
    /// Adds the state of `limit` for `key`, from which `cost` units are to be taken.
    pub(super) fn push(&mut self, limit: &Limit, place: Place, key: &[u8], cost: u64) {
        let start = self.names.len();
        let within = limit.write_name(key, &mut self.names);
        let counts = (limit.meter(), cost, limit.is_shadow(), limit.leased());
        self.add(start, place, within, counts);
        if let Some((lock, status)) = limit.lock() {
            limit.write_lock_name(key, &mut self.names);
            self.guard(lock, status);
        }
    }

    /// Adds a state, whose name was written last.
    fn add(
        &mut self,
        start: usize,
        place: Place,
        key: Range<usize>,
        (meter, cost, shadow, lease): (Meter, u64, bool, u64),
    ) {
        self.states.push(State {
            place,
            start,
            end: self.names.len(),
            key,
            meter,
            lock: None,
            cost,
            looks: false,
            shadow,
            lease,
            units: AtomicU64::new(0),
            stamp: Stamp::default(),
        });
    }

    /// Guards the state that was added last by a lock, whose name was written last.
    fn guard(&mut self, lock: Lock, status: StatusCode) {
        if let Some(state) = self.states.last_mut() {
            let end = self.names.len();
            state.lock = Some(Box::new(Guard { lock, status, end }));
        }
    }

    /// The state at this place of another ask, which is now to take `cost` units.
    pub(super) fn push_again(&mut self, other: &Self, at: usize, cost: u64) {
        let State { ref place, ref key, meter, shadow, lease, .. } = other.states[at];
        let start = self.names.len();
        self.names.extend_from_slice(other.name(&other.states[at]));
        self.add(start, place.clone(), key.clone(), (meter, cost, shadow, lease));
        if let Some(Guard { lock, status, end }) = other.states[at].lock.as_deref().copied() {
            self.names.extend_from_slice(&other.names[other.states[at].end..end]);
            self.guard(lock, status);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The places, keys and costs of all states.
    pub(super) fn asked_for(&self) -> impl Iterator<Item = (&Place, &[u8], u64)> {
        self.states.iter().map(|state| (&state.place, self.key_of(state), state.cost))
    }

    /// The key of the state at this place.
    pub(super) fn key(&self, at: usize) -> Option<&[u8]> {
        self.states.get(at).map(|state| self.key_of(state))
    }

    fn key_of(&self, state: &State) -> &[u8] {
        &self.name(state)[state.key.clone()]
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
            state.looks = true;
        }
    }

    /// Takes note of the time, before the store is asked.
    pub(super) fn begin(&mut self, cache: &DenyCache) {
        self.asked = cache.now();
    }

    /// Asks the store, unless the units are here, or it is known to deny this.
    pub(super) fn acquire(&self, desk: Desk<'_>) -> Reply {
        let Desk { store, leases, cache, .. } = desk;
        let (one, many);
        let hits: &[Hit<'_>] = match self.states.as_slice() {
            [state] if state.lock.is_none() => {
                one = [self.hit(state)];
                &one
            }
            _ => {
                many = self.hits();
                &many
            }
        };
        let leases = leases.filter(|_| Leases::serve(hits));
        if let Some(answer) = leases.and_then(|leases| leases.admit(hits)) {
            return Reply::now(Ok(answer));
        }
        if let Some(denial) = cache.and_then(|cache| cache.denied(hits, self.asked)) {
            return Reply::now(Ok(denial));
        }
        match leases {
            Some(leases) if desk.asks(hits) => leases.acquire(hits),
            // An open breaker answers at once, without a task.
            _ => store.acquire(hits),
        }
    }

    /// Has `cache` take note of the store's answer.
    pub(super) fn teach(&self, cache: &DenyCache, answer: &Answer) {
        if !answer.found.is_empty() || !cache.is_empty() {
            cache.learn(&self.hits(), answer, self.asked);
        }
    }

    fn hits(&self) -> SmallVec<[Hit<'_>; 4]> {
        let mut hits = SmallVec::new();
        for state in &self.states {
            hits.push(self.hit(state));
            if let Some(Guard { lock, end, .. }) = state.lock.as_deref().copied() {
                let key = &self.names[state.end..end];
                hits.push(Hit::new(key, Meter::Lock(lock), state.takes()));
            }
        }
        hits
    }

    fn hit(&self, state: &State) -> Hit<'_> {
        let State { meter, shadow, lease, .. } = *state;
        Hit { key: self.name(state), meter, cost: state.takes(), shadow, lease }
    }

    /// Makes an answer of a store, which may be anybody's, an error if it does not fit what was asked.
    pub(super) fn verify(&self, answer: &mut Result<Answer, StoreError>) {
        let Ok(Answer { standings, .. }) = answer else { return };
        let locks = self.states.iter().filter(|state| state.lock.is_some()).count();
        if standings.len() != self.states.len() + locks {
            *answer = Err(StoreError::new(
                StoreErrorKind::Unexpected,
                "the store answered for another number of limits",
            ));
        }
    }

    /// Tells `each` where each state stands by a verified answer, and whether it is locked. Takes note
    /// of what was charged.
    pub(super) fn read(
        &mut self,
        answer: &Answer,
        mut each: impl FnMut(&Place, u64, (Standing, Option<Locked>)),
    ) {
        let stands = |state: &State, standings: &mut std::slice::Iter<'_, Standing>| {
            let mut standing = *standings.next()?;
            let guard = state.lock.as_ref();
            let locked = guard.and_then(|it| locked(it, *standings.next()?, &mut standing));
            Some((standing, locked))
        };
        let mut standings = answer.standings.iter();
        let mut admits = |state: &State| {
            stands(state, &mut standings).is_none_or(|(it, _)| state.shadow || it.fits)
        };
        // What a limit that stands alone says is all there is to say.
        let admitted = self.states.len() == 1 || self.states.iter().all(&mut admits);
        let mut standings = answer.standings.iter();
        for state in &mut self.states {
            let Some((standing, locked)) = stands(state, &mut standings) else { break };
            // Who took something has to wait for it. A shadow whose key holds something else does not.
            let charged = admitted && standing.fits && standing.reset > 0;
            state.units = AtomicU64::new(if charged { state.takes() } else { 0 });
            state.stamp = standing.stamp;
            each(&state.place, state.cost, (standing, locked));
        }
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
                let State { meter, stamp, .. } = *state;
                let stamp = meter.rest(stamp, state.takes() - before);
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

impl State {
    /// Units to take.
    const fn takes(&self) -> u64 {
        if self.looks { 0 } else { self.cost }
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
