use std::collections::HashMap;

use tollgate::{
    Timestamp,
    algorithm::{Backlog, FullAt},
    store::Hit,
};

use super::{Found, Request};

/// What the script must do, by the crate's own arithmetic: a map of states.
#[derive(Debug, Default)]
pub(crate) struct Model {
    states: HashMap<Vec<u8>, FullAt>,
    changed: HashMap<Vec<u8>, FullAt>,
}

impl Model {
    /// What is found for each hit of a batch.
    pub(crate) fn acquire(&mut self, batch: &[Request<'_>], now: Timestamp) -> Vec<Found> {
        self.changed.clear();
        batch.iter().flat_map(|request| self.decide(request, now)).collect()
    }

    /// The states that the last batch wrote.
    pub(crate) fn changed(&self) -> &HashMap<Vec<u8>, FullAt> {
        &self.changed
    }

    /// All states that were ever written.
    pub(crate) fn states(&self) -> &HashMap<Vec<u8>, FullAt> {
        &self.states
    }

    fn decide(&mut self, request: &Request<'_>, now: Timestamp) -> Vec<Found> {
        let backlogs: Vec<Backlog> = request.iter().map(|hit| self.look(hit, now)).collect();
        let admitted =
            request.iter().zip(&backlogs).all(|(hit, backlog)| hit.bucket.fits(*backlog, hit.cost));
        for (hit, backlog) in request.iter().zip(&backlogs) {
            if admitted && hit.cost > 0 {
                self.put(hit, *backlog, hit.cost, now);
            }
        }
        backlogs.into_iter().map(|backlog| Found::Backlog { backlog, admitted }).collect()
    }

    fn look(&mut self, hit: &Hit<'_>, now: Timestamp) -> Backlog {
        let (backlog, ahead) = hit.bucket.backlog(self.states.get(hit.key).copied(), now);
        if ahead {
            self.put(hit, backlog, 0, now);
        }
        backlog
    }

    fn put(&mut self, hit: &Hit<'_>, backlog: Backlog, cost: u64, now: Timestamp) {
        let state = hit.bucket.state(backlog, cost, now);
        self.states.insert(hit.key.into(), state);
        self.changed.insert(hit.key.into(), state);
    }
}

/// Milliseconds until a state equals a fresh one, rounded up, at least one.
pub(crate) fn time_to_live(state: FullAt, now: Timestamp) -> u64 {
    let (micros, picos) = state.parts();
    let left = (micros * 1_000_000 + picos).saturating_sub(u128::from(now.as_micros()) * 1_000_000);
    u64::try_from(left.div_ceil(1_000_000_000)).expect("within ten years").max(1)
}
