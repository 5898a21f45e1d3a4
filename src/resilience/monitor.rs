use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use super::{
    Breaker, BreakerState, Failure, Health,
    breaker::{Circuits, Flip, Heard},
};
use crate::{
    failure::StoreErrorKind,
    store::{Moment, Store, StoreError, Ticket, Tickets, Watch},
    telemetry,
    time::{Clock, MICROS_PER_SEC, Timestamp, micros},
};

/// A store counts as failing until no request has failed for so long: one flaky key would else log
/// two lines for each request.
const QUIET: u64 = MICROS_PER_SEC;

/// Knows how a store does: counts its failures, logs when they begin and end, and has its breaker.
#[derive(Debug)]
pub(crate) struct Monitor {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    circuits: Option<Circuits>,
    /// A bit for each kind of failure that was logged since the store last answered.
    failing: AtomicU32,
    failures: [AtomicU64; StoreErrorKind::COUNT],
    /// When the last failure was, and, in the last bits, of what kind; 0 if there was none.
    last_failure: AtomicU64,
}

const KIND_BITS: u32 = usize::BITS - (StoreErrorKind::COUNT - 1).leading_zeros();

impl Monitor {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        breaker: Option<Breaker>,
    ) -> Self {
        let now = clock.now().as_micros();
        Self {
            store,
            circuits: breaker.map(|breaker| Circuits::new(breaker, now)),
            clock,
            failing: AtomicU32::new(0),
            failures: Default::default(),
            last_failure: AtomicU64::new(0),
        }
    }

    /// Takes note of an answer, or of the lack of one.
    pub(crate) fn note<T>(&self, answer: &Result<T, StoreError>) {
        match answer {
            Ok(_) => self.answered(),
            Err(error) => self.failed(error),
        }
    }

    /// What is to be seen from outside.
    pub(crate) fn health(&self) -> Health {
        let last = self.last_failure.load(Ordering::Relaxed);
        let kind = StoreErrorKind::ALL.get(last as usize & ((1 << KIND_BITS) - 1));
        let at = Timestamp::from_micros(last >> KIND_BITS);
        Health {
            breaker: self.state(),
            last_failure: kind.filter(|_| last > 0).map(|&kind| Failure { kind, at }),
            failures: std::array::from_fn(|at| self.failures[at].load(Ordering::Relaxed)),
        }
    }

    /// Whether a call about these keys goes to the store.
    pub(crate) fn is_closed<'k>(&self, mut keys: impl Iterator<Item = &'k [u8]>) -> bool {
        let Some(circuits) = &self.circuits else { return true };
        keys.all(|key| circuits.is_closed(self.store.shard(key)))
    }

    fn state(&self) -> BreakerState {
        let circuits = self.circuits.as_ref();
        circuits.map_or(BreakerState::Closed, |circuits| circuits.state(self.now()))
    }

    /// Lets a call to the store in, about these keys. None, while the breaker of a part that it goes to
    /// is open.
    pub(super) fn enter<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Option<Tickets> {
        let Some(circuits) = &self.circuits else { return Some(Tickets::default()) };
        let now = self.moment();
        let mut tickets: Option<Tickets> = None;
        for shard in keys.map(|key| self.store.shard(key)) {
            if tickets.iter().flat_map(Tickets::iter).any(|ticket| ticket.shard == shard) {
                continue;
            }
            let Some(ticket) = circuits.with(shard, |circuit| circuit.enter(now)) else {
                // Nobody is asked.
                tickets.iter().for_each(|tickets| self.heard(tickets, None));
                return None;
            };
            if ticket.probe.is_some() {
                self.flipped(shard, Flip::Probing);
            }
            let ticket = Ticket { shard, ..ticket };
            match &mut tickets {
                Some(tickets) => tickets.push(ticket),
                None => tickets = Some(Tickets::new(ticket)),
            }
        }
        Some(tickets.unwrap_or_default())
    }

    /// A call was answered at once. What is wrong with it was then seen here, and not by the store.
    pub(super) fn at_once(&self, tickets: &Tickets, answer: Result<(), &StoreError>) {
        let seen_here =
            matches!(answer, Err(error) if error.kind() == StoreErrorKind::Misconfigured);
        self.heard(tickets, (!seen_here).then_some(answer));
    }

    fn answered(&self) {
        // While the breaker is open, the line that it closes is the one that tells of the end.
        if self.failing.load(Ordering::Relaxed) == 0 || self.state() != BreakerState::Closed {
            return;
        }
        // No breaker has said so that was left open by a part which serves nothing any more.
        telemetry::breaker_is(BreakerState::Closed.place());
        let last = self.last_failure.load(Ordering::Relaxed) >> KIND_BITS;
        let quiet = self.now().saturating_sub(last);
        if quiet >= QUIET && self.failing.swap(0, Ordering::Relaxed) != 0 {
            telemetry::store_recovered();
        }
    }

    fn failed(&self, error: &StoreError) {
        let kind = error.kind();
        telemetry::store_failed(kind.as_str());
        self.failures[kind.place()].fetch_add(1, Ordering::Relaxed);
        if kind == StoreErrorKind::BreakerOpen {
            // The breaker itself says when it opens.
            return;
        }
        let last = self.now() << KIND_BITS | kind.place() as u64;
        self.last_failure.store(last, Ordering::Relaxed);
        let bit = 1 << kind.place();
        if self.failing.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            telemetry::store_failing(error, kind == StoreErrorKind::Misconfigured);
        }
    }

    fn flipped(&self, shard: u32, flip: Flip) {
        let state = self.state();
        telemetry::breaker_is(state.place());
        // Where there is one part only, its number says nothing.
        let parts = self.circuits.as_ref().is_some_and(Circuits::are_several);
        let name = self.store.shard_name(shard);
        let (shard, name) = (parts.then_some(shard), name.as_deref());
        match flip {
            Flip::Opened(why, pause) => telemetry::breaker_opened(shard, name, why, pause),
            Flip::Probing => telemetry::breaker_probes(shard, name),
            Flip::StillOpen => telemetry::breaker_still_open(shard, name),
            Flip::Closed => telemetry::breaker_closed(shard, name),
        }
        if matches!(flip, Flip::Closed) && state == BreakerState::Closed {
            // The line that says so serves for the failures that came before.
            self.failing.store(0, Ordering::Relaxed);
        }
    }

    fn moment(&self) -> Moment {
        Moment { time: self.now(), lateness: micros(self.store.lateness()) }
    }

    fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }
}

impl Watch for Monitor {
    fn heard(&self, tickets: &Tickets, answer: Option<Result<(), &StoreError>>) {
        let Some(circuits) = &self.circuits else { return };
        let now = self.moment();
        let said = answer.map_or(Heard::Nothing, what_it_says);
        let whose = answer.and_then(Result::err).and_then(StoreError::shard);
        for ticket in tickets.iter() {
            let shard = ticket.shard;
            // Of the others nothing is known: they may not have been asked.
            let heard =
                if whose.is_none_or(|whose| whose == shard) { said } else { Heard::Nothing };
            let flip = circuits.with(shard, |circuit| circuit.leave(ticket, now, heard));
            if let Some(flip) = flip {
                self.flipped(shard, flip);
            }
        }
    }
}

/// What an answer says about the store as a whole.
const fn what_it_says(answer: Result<(), &StoreError>) -> Heard {
    let Err(error) = answer else { return Heard::Answer };
    match error.kind() {
        StoreErrorKind::Timeout => Heard::Timeout,
        StoreErrorKind::Unreachable
        | StoreErrorKind::Busy
        | StoreErrorKind::ReadOnly
        | StoreErrorKind::OutOfMemory => Heard::Failure,
        // The server is there, and may well decide about other keys.
        StoreErrorKind::Misconfigured | StoreErrorKind::Unexpected => Heard::Answer,
        // The store was not asked.
        StoreErrorKind::Overloaded | StoreErrorKind::BreakerOpen => Heard::Nothing,
    }
}
