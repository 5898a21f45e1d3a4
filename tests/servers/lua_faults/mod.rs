//! Faults that other limiters' scripts had, against the real server.

#![cfg(test)]

mod bucket;
mod expiry;
mod foreign;
mod foreign_windows;
mod lock;
mod numbers;
mod refund;
mod several;
mod windows;

use std::time::Duration;

use tollgate::{
    Limiter, Quota, RedisStore, Standing, Store, StoreError, Timestamp, algorithm::Algorithm,
    store::Hit,
};

use crate::{script::Joined, support::RedisServer};

/// What the names of the keys of [`redis`] begin with.
const PREFIX: &str = "faults:";
/// A time that is no round number, with few microseconds.
const START: u64 = 1_764_461_091_000_007;

/// A server, and the crate's own store on it.
async fn redis() -> (RedisServer, RedisStore) {
    let server = RedisServer::start().await;
    let store = RedisStore::builder(server.url())
        .deadline(Duration::from_secs(10))
        .prefix(PREFIX.trim_end_matches(':'))
        .connect()
        .await;
    (server, store.unwrap())
}

/// A limiter that asks about every request, also where it knows that the answer is no.
fn asking(store: impl Store) -> Limiter {
    Limiter::builder(store).remember_denials(Duration::ZERO).breaker(None).build()
}

fn hit(key: &str, quota: Quota, cost: u64) -> Hit<'_> {
    Hit {
        key: key.as_bytes(),
        meter: Algorithm::TokenBucket.meter(quota),
        cost,
        shadow: false,
        lease: 0,
    }
}

/// Where each hit of a request stands.
async fn try_charge(store: &RedisStore, hits: &[Hit<'_>]) -> Result<Vec<Standing>, StoreError> {
    Ok(store.acquire(hits).await?.standings.to_vec())
}

async fn charge(store: &RedisStore, key: &str, quota: Quota, cost: u64) -> Standing {
    try_charge(store, &[hit(key, quota, cost)]).await.unwrap()[0]
}

/// The same, by a clock of the test's own.
fn charge_at(lua: &mut Joined, micros: u64, key: &str, quota: Quota, cost: u64) -> Standing {
    let hit = hit(key, quota, cost);
    let (found, _) = lua.acquire(&[vec![hit]], Timestamp::from_micros(micros));
    found[0].standing(&hit, Timestamp::from_micros(micros))
}

/// The text that a key of the store holds.
fn kept(server: &RedisServer, key: &str) -> String {
    server.command(&["GET", &format!("{PREFIX}{key}")])
}

/// Milliseconds that a key of the store has left to live; -1 for ever, -2 if there is none.
fn left(server: &RedisServer, key: &str) -> i64 {
    server.command(&["PTTL", &format!("{PREFIX}{key}")]).parse().unwrap()
}

/// The server's time in microseconds.
fn time(server: &RedisServer) -> u64 {
    let time = server.command(&["TIME"]);
    let (secs, micros) = time.split_once('\n').unwrap();
    secs.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap()
}
