//! The memory store grants exactly what a quota says.

#![cfg(test)]

#[path = "../conformance/mod.rs"]
mod conformance;

use tollgate::{
    ManualClock, MemoryStore, Standing, Store as _, Timestamp, algorithm::Meter, store::Hit,
};

use self::conformance::{Backend, Counted, calendar, exact, oracle, together, waits};
use crate::support;

struct Memory {
    store: MemoryStore,
    clock: ManualClock,
}

fn memory() -> Counted<Memory> {
    let (store, clock) = support::memory();
    Counted::new("memory", Memory { store, clock })
}

impl Backend for Memory {
    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        self.clock.set(now);
        let ask = |&(key, cost): &(&str, u64)| {
            let reply =
                self.store.acquire(&[Hit { key: key.as_bytes(), meter, cost, shadow: false }]);
            reply.try_now().unwrap().unwrap().standings[0]
        };
        asks.iter().map(ask).collect()
    }

    fn together(&mut self, now: Timestamp, hits: &[Hit<'_>]) -> Vec<Standing> {
        self.clock.set(now);
        self.store.acquire(hits).try_now().unwrap().unwrap().standings.to_vec()
    }
}

#[test]
fn all_units_and_no_more() {
    exact::all_units_and_no_more(&mut memory());
}

#[test]
fn waits_to_the_microsecond() {
    exact::waits_to_the_microsecond(&mut memory());
}

#[test]
fn patient_callers_get_the_rate() {
    exact::patient_callers_get_the_rate(&mut memory());
}

#[test]
fn hasty_callers_get_the_rate() {
    exact::hasty_callers_get_the_rate(&mut memory());
}

#[test]
fn waits_of_windows_to_the_microsecond() {
    waits::waits_of_windows_to_the_microsecond(&mut memory());
}

#[test]
fn windows_hold_all_units_and_no_more() {
    waits::windows_hold_all_units_and_no_more(&mut memory());
}

#[test]
fn looks_take_nothing() {
    waits::looks_take_nothing(&mut memory());
}

#[test]
fn windows_answer_as_an_oracle_does() {
    oracle::windows_answer_as_an_oracle_does(&mut memory());
}

#[test]
fn requests_to_all_algorithms_charge_all_or_none() {
    together::requests_to_all_algorithms_charge_all_or_none(&mut memory());
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
    exact::no_step_back_locks_for_longer_than_a_refill(&mut memory());
}
