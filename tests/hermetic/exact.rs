//! The memory store grants exactly what a quota says.

#![cfg(test)]

#[path = "../conformance/exact.rs"]
mod conformance;

use tollgate::{
    ManualClock, MemoryStore, Quota, Standing, Store as _, Timestamp, algorithm::TokenBucket,
    store::Hit,
};

use self::conformance::Buckets;

struct Memory {
    store: MemoryStore,
    clock: ManualClock,
}

impl Memory {
    fn new() -> Self {
        let clock = ManualClock::new();
        Self { store: MemoryStore::builder().clock(clock.clone()).build(), clock }
    }
}

impl Buckets for Memory {
    fn ask(&mut self, quota: Quota, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        self.clock.set(now);
        let bucket = TokenBucket::new(quota);
        let ask = |&(key, cost): &(&str, u64)| {
            let reply = self.store.acquire(&[Hit { key: key.as_bytes(), bucket, cost }]);
            reply.try_now().unwrap().unwrap().standings[0]
        };
        asks.iter().map(ask).collect()
    }
}

#[test]
fn all_units_and_no_more() {
    conformance::all_units_and_no_more(&mut Memory::new());
}

#[test]
fn waits_to_the_microsecond() {
    conformance::waits_to_the_microsecond(&mut Memory::new());
}

#[test]
fn patient_callers_get_the_rate() {
    conformance::patient_callers_get_the_rate(&mut Memory::new());
}

#[test]
fn hasty_callers_get_the_rate() {
    conformance::hasty_callers_get_the_rate(&mut Memory::new());
}

#[test]
fn no_step_back_locks_for_longer_than_a_refill() {
    conformance::no_step_back_locks_for_longer_than_a_refill(&mut Memory::new());
}
