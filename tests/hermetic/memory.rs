//! The store in this process, under everything that clients can do to it.

mod cleaning;
mod clock;
mod flood;
mod threads;

use tollgate::{
    Algorithm, Calendar, MemoryStore, Quota, Store,
    algorithm::Meter,
    store::{Answer, Hit},
};

/// One limit of each algorithm; those of the calendar by their own periods.
fn meters(quota: Quota) -> Vec<Meter> {
    let calendar = [Calendar::Day, Calendar::Week, Calendar::Month];
    let calendar = calendar.map(|unit| {
        Algorithm::Calendar(unit).meter(Quota::new(quota.quantity(), unit.nominal()).unwrap())
    });
    let others = [
        Algorithm::TokenBucket,
        Algorithm::SlidingLog,
        Algorithm::SlidingCounter,
        Algorithm::FixedWindow,
    ];
    others.map(|algorithm| algorithm.meter(quota)).into_iter().chain(calendar).collect()
}

/// Charges units of one limit.
fn take(store: &MemoryStore, key: &[u8], quota: Quota, cost: u64) -> Answer {
    take_by(store, key, Algorithm::TokenBucket.meter(quota), cost)
}

fn take_by(store: &MemoryStore, key: &[u8], meter: Meter, cost: u64) -> Answer {
    let hit = Hit { key, meter, cost, shadow: false, lease: 0 };
    store.acquire(&[hit]).try_now().expect("memory answers at once").unwrap()
}

/// Whether the units were taken.
fn takes(store: &MemoryStore, key: &[u8], quota: Quota, cost: u64) -> bool {
    take(store, key, quota, cost).standings[0].fits()
}
