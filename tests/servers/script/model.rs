use std::collections::{HashMap, HashSet};

use tollgate::{
    Timestamp,
    algorithm::{Meter, Reading, State},
    store::{Hit, Refund},
};

use super::{Found, Kept, Request};

/// What the script must do, by the crate's own arithmetic: a map of states.
#[derive(Debug, Default)]
pub(crate) struct Model {
    keys: HashMap<Vec<u8>, Modelled>,
    changed: HashSet<Vec<u8>>,
}

/// What a key must hold.
#[derive(Debug)]
pub(crate) struct Modelled {
    state: State,
    /// By which it was counted last.
    meter: Meter,
    /// Units that were ever taken, by which the members of a log are numbered, until some are given
    /// back.
    taken: Option<u64>,
}

impl Model {
    /// What is found for each hit of a batch.
    pub(crate) fn acquire(&mut self, batch: &[Request<'_>], now: Timestamp) -> Vec<Found> {
        self.changed.clear();
        batch.iter().flat_map(|request| self.decide(request, now)).collect()
    }

    /// The states that the last batch wrote.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&[u8], &Modelled)> {
        self.changed.iter().map(|key| (key.as_slice(), &self.keys[key]))
    }

    /// All states that were ever written.
    pub(crate) fn states(&self) -> impl ExactSizeIterator<Item = (&[u8], &Modelled)> {
        self.keys.iter().map(|(key, modelled)| (key.as_slice(), modelled))
    }

    fn decide(&mut self, request: &Request<'_>, now: Timestamp) -> Vec<Found> {
        let mut readings: Vec<Reading> = Vec::new();
        let mut fitted = true;
        for hit in request {
            let mut reading = self.look(hit, now);
            if hit.meter.guards() && !fitted {
                self.deny(hit, &mut reading, now);
            }
            fitted = hit.meter.fits(reading, hit.cost, now);
            readings.push(reading);
        }
        let mut hits = request.iter().zip(&readings);
        let fits = |hit: &Hit<'_>, reading| hit.meter.fits(reading, hit.cost, now);
        let request_admitted = hits.all(|(hit, reading)| hit.shadow || fits(hit, *reading));
        let mut found = Vec::new();
        for (hit, reading) in request.iter().zip(readings) {
            let admitted = request_admitted && fits(hit, reading);
            let state = self.keys.get(hit.key).map(|modelled| &modelled.state);
            let reading = hit.meter.foresee(reading, state, hit.cost, admitted, now);
            found.push(Found::Read { reading, admitted });
            if admitted && hit.cost > 0 && !hit.meter.guards() {
                self.charge(hit, reading, now);
            }
        }
        found
    }

    fn look(&mut self, hit: &Hit<'_>, now: Timestamp) -> Reading {
        let modelled = self.keys.get_mut(hit.key);
        if let Some(modelled) = modelled
            && hit.meter.settle(&mut modelled.state, now)
        {
            modelled.meter = hit.meter;
            self.changed.insert(hit.key.into());
        }
        hit.meter.read(self.keys.get(hit.key).map(|modelled| &modelled.state), now)
    }

    fn deny(&mut self, hit: &Hit<'_>, reading: &mut Reading, now: Timestamp) {
        let mut state = hit.meter.empty();
        if hit.meter.deny(&mut state, reading, now) {
            let modelled = Modelled { state, meter: hit.meter, taken: Some(0) };
            self.keys.insert(hit.key.into(), modelled);
            self.changed.insert(hit.key.into());
        }
    }

    /// Gives back what was charged.
    pub(crate) fn refund(&mut self, refunds: &[Refund<'_>], now: Timestamp) {
        self.changed.clear();
        for Refund { key, meter, units, stamp } in refunds {
            let Some(modelled) = self.keys.get_mut(*key) else { continue };
            let settled = meter.settle(&mut modelled.state, now);
            let given = meter.refund(&mut modelled.state, *units, *stamp, now);
            if given {
                modelled.taken = None;
            }
            if settled || given {
                modelled.meter = *meter;
                self.changed.insert((*key).into());
            }
            // A set without members is none.
            if matches!(&modelled.state, State::SlidingLog(log) if log.iter().next().is_none()) {
                self.keys.remove(*key);
                self.changed.remove(*key);
            }
        }
    }

    /// Whether a key is a log of which some units were given back.
    pub(crate) fn is_unnumbered(&self, key: &[u8]) -> bool {
        self.keys.get(key).is_some_and(Modelled::is_unnumbered)
    }

    /// Forgets a key.
    pub(crate) fn reset(&mut self, key: &[u8]) {
        self.keys.remove(key);
    }

    fn charge(&mut self, hit: &Hit<'_>, reading: Reading, now: Timestamp) {
        let fresh = || Modelled { state: hit.meter.empty(), meter: hit.meter, taken: Some(0) };
        let modelled = self.keys.entry(hit.key.into()).or_insert_with(fresh);
        hit.meter.charge(&mut modelled.state, reading, hit.cost, now);
        modelled.meter = hit.meter;
        modelled.taken = modelled.taken.map(|taken| taken + hit.cost);
        self.changed.insert(hit.key.into());
    }
}

impl Modelled {
    /// The state in the script's form.
    pub(crate) fn kept(&self) -> Kept {
        match self.taken {
            Some(taken) => Kept::of(&self.state, taken),
            None => Kept::of(&self.state, 0).without_numbers(),
        }
    }

    /// Whether it is a log of which some units were given back: what its numbers are is left open.
    pub(crate) const fn is_unnumbered(&self) -> bool {
        self.taken.is_none()
    }

    /// Whether the state says no more than none.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        self.meter.fresh_at(&self.state) <= now.as_micros()
    }

    /// The second, since the Unix epoch, with whose begin a state that was written at `now` is gone: the
    /// one after that in which it comes to equal a fresh one.
    pub(crate) fn until(&self, now: Timestamp) -> u64 {
        let fresh_at = match &self.state {
            State::TokenBucket(full_at) => {
                u64::try_from(full_at.parts().0).expect("within ten years")
            }
            state => self.meter.fresh_at(state),
        };
        fresh_at.max(now.as_micros()) / 1_000_000 + 1
    }
}
