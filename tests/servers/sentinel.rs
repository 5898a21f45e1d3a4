//! The store on the primary that sentinels name.

mod clocks;
mod conforms;
mod ends;
mod failover;
mod sentinels;
mod settings;
mod split_brain;
mod words;

use std::time::Duration;

use tollgate::{Limit, Limiter, Quota, RedisStore, RedisStoreBuilder};

use crate::support::{RedisServer, sentinel::until};

/// A limiter that asks about each request, with time for a busy machine.
async fn patient(store: RedisStoreBuilder) -> Limiter {
    let store = store.deadline(Duration::from_secs(3)).connect().await.expect("a primary");
    Limiter::builder(store).breaker(None).build()
}

/// One unit of a key that stays for more than a minute.
async fn takes(limiter: &Limiter, key: &str) -> bool {
    let limit = Limit::new("all", Quota::per_day(1_000));
    let checked = tokio::time::timeout(Duration::from_secs(10), limiter.check(&limit, key));
    checked.await.expect("no request hangs").is_ok_and(|decision| decision.is_allowed())
}

/// Waits until a unit was taken.
async fn recovers(limiter: &Limiter, key: &str) {
    until("a unit can be taken", async || takes(limiter, key).await).await;
}

fn keys(server: &RedisServer) -> u32 {
    server.command(&["DBSIZE"]).parse().expect("a number")
}

fn is_primary(server: &RedisServer) -> bool {
    server.command(&["ROLE"]).starts_with("master")
}

fn to(url: &str) -> RedisStoreBuilder {
    RedisStore::builder(url)
}
