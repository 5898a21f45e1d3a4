//! The store in this process, under everything that clients can do to it.

mod cleaning;
mod clock;
mod flood;
mod threads;

use tollgate::{
    MemoryStore, Quota, Store,
    algorithm::TokenBucket,
    store::{Answer, Hit},
};

/// Charges units of one limit.
fn take(store: &MemoryStore, key: &[u8], quota: Quota, cost: u64) -> Answer {
    let hit = Hit { key, bucket: TokenBucket::new(quota), cost };
    store.acquire(&[hit]).try_now().expect("memory answers at once").unwrap()
}

/// Whether the units were taken.
fn takes(store: &MemoryStore, key: &[u8], quota: Quota, cost: u64) -> bool {
    take(store, key, quota, cost).standings[0].fits()
}
