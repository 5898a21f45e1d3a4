use std::sync::{
    PoisonError, RwLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use super::{Breaker, BreakerState, circuit::Circuit};

/// Parts that have a breaker of their own; the others share the last.
const MOST: usize = 1_024;

/// A breaker for each part of a store. That of a store in one part is found without a lock.
#[derive(Debug)]
pub(crate) struct Circuits {
    settings: Breaker,
    begun: u64,
    first: Circuit,
    /// Whether there are others.
    several: AtomicBool,
    others: RwLock<Vec<Circuit>>,
}

impl Circuits {
    pub(crate) fn new(settings: Breaker, now: u64) -> Self {
        let first = Circuit::new(settings, now);
        Self {
            settings,
            begun: now,
            first,
            several: AtomicBool::new(false),
            others: RwLock::default(),
        }
    }

    pub(crate) fn with<T>(&self, shard: u32, look: impl FnOnce(&Circuit) -> T) -> T {
        let Some(at) = (shard as usize).min(MOST).checked_sub(1) else { return look(&self.first) };
        {
            let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(circuit) = others.get(at) {
                return look(circuit);
            }
        }
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        while others.len() <= at {
            others.push(Circuit::new(self.settings, self.begun));
        }
        self.several.store(true, Relaxed);
        look(&others[at])
    }

    /// The worst of them, those left out that nobody asks any more.
    pub(crate) fn state(&self, now: u64) -> BreakerState {
        if !self.are_several() {
            return self.first.state();
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let all = others.iter().chain([&self.first]).filter(|circuit| !circuit.is_forgotten(now));
        let worst = all.map(Circuit::state).max_by_key(|state| state.place());
        worst.unwrap_or(BreakerState::Closed)
    }

    /// Whether that of this part is closed.
    pub(crate) fn is_closed(&self, shard: u32) -> bool {
        self.with(shard, Circuit::is_closed)
    }

    pub(crate) fn are_several(&self) -> bool {
        self.several.load(Relaxed)
    }
}
