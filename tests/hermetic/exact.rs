//! The memory store grants exactly what a quota says.

#![cfg(test)]

#[path = "../conformance/mod.rs"]
mod conformance;

use tollgate::{
    ManualClock, MemoryStore, Standing, Store as _, Timestamp, algorithm::Meter, store::Hit,
};

use self::conformance::{Backend, calendar, exact, oracle, waits};

struct Memory {
    store: MemoryStore,
    clock: ManualClock,
    tally: crate::tally::Tally,
}

impl Memory {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::builder().clock(clock.clone()).build();
        Self { store, clock, tally: crate::tally::Tally::of("memory") }
    }
}

impl Backend for Memory {
    fn together(&mut self, micros: u64, hits: &[Hit<'_>]) -> Vec<Standing> {
        self.tally.request(hits.iter().map(|hit| hit.meter));
        self.clock.set(Timestamp::from_micros(micros));
        self.store.acquire(hits).try_now().unwrap().unwrap().standings.to_vec()
    }

    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        self.clock.set(now);
        asks.iter().for_each(|_| self.tally.request([meter]));
        let ask = |&(key, cost): &(&str, u64)| {
            let reply =
                self.store.acquire(&[Hit { key: key.as_bytes(), meter, cost, shadow: false }]);
            reply.try_now().unwrap().unwrap().standings[0]
        };
        asks.iter().map(ask).collect()
    }
}

#[test]
fn a_request_charges_all_of_its_limits_or_none() {
    conformance::all_or_none::a_request_charges_all_of_its_limits_or_none(&mut Memory::new());
}

#[test]
fn all_units_and_no_more() {
    exact::all_units_and_no_more(&mut Memory::new());
}

#[test]
fn waits_to_the_microsecond() {
    exact::waits_to_the_microsecond(&mut Memory::new());
}

#[test]
fn patient_callers_get_the_rate() {
    exact::patient_callers_get_the_rate(&mut Memory::new());
}

#[test]
fn hasty_callers_get_the_rate() {
    exact::hasty_callers_get_the_rate(&mut Memory::new());
}

#[test]
fn waits_of_windows_to_the_microsecond() {
    waits::waits_of_windows_to_the_microsecond(&mut Memory::new());
}

#[test]
fn windows_hold_all_units_and_no_more() {
    waits::windows_hold_all_units_and_no_more(&mut Memory::new());
}

#[test]
fn looks_take_nothing() {
    waits::looks_take_nothing(&mut Memory::new());
}

#[test]
fn windows_answer_as_an_oracle_does() {
    oracle::windows_answer_as_an_oracle_does(&mut Memory::new());
}

#[test]
fn units_of_the_calendar_begin_and_end_by_the_table() {
    for (unit, at, first, next) in calendar::table() {
        let (from, to) = unit.around(Timestamp::from_micros(at));
        assert_eq!((from.as_micros(), to.as_micros()), (first, next), "{unit:?} at {at}");
    }
}

#[test]
fn no_step_back_locks_for_longer_than_a_refill() {
    exact::no_step_back_locks_for_longer_than_a_refill(&mut Memory::new());
}
