//! States kept in a Redis Cluster.

#![cfg(test)]

mod answers;
mod clocks;
mod events;
mod exact;
mod names;
mod numbers;
mod one_slot;
mod pipeline;
mod redirections;
mod several;
mod told;
mod trouble;
mod urls;
mod withheld;

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate::{
    Algorithm, Quota, RedisStore, RedisStoreBuilder, Store as _, StoreError,
    store::{Answer, Hit},
};

use crate::support::cluster::Cluster;

/// So many that nobody runs out of them, and so slow that none comes back during a test.
const PLENTY: Quota = Quota::per_day(1_000);

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// A store that is not in a hurry, with names of its own.
fn builder(cluster: &Cluster) -> RedisStoreBuilder {
    let prefix = format!("t{:x}", fastrand::u64(..));
    RedisStore::builder(cluster.url()).prefix(prefix).deadline(Duration::from_secs(10))
}

async fn connect(cluster: &Cluster) -> RedisStore {
    builder(cluster).connect().await.expect("a cluster")
}

fn hit(key: &str, quota: Quota) -> Hit<'_> {
    Hit::new(key.as_bytes(), Algorithm::TokenBucket.meter(quota), 1)
}

fn look<'a>(hit: &Hit<'a>) -> Hit<'a> {
    Hit { cost: 0, ..*hit }
}

async fn take(store: &RedisStore, key: &str) -> Result<Answer, StoreError> {
    store.acquire(&[hit(key, PLENTY)]).await
}

/// Waits until it is so.
async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("it never came to: {what}"));
}

/// Units of plenty that were taken of a key.
async fn taken(store: &RedisStore, key: &str) -> u64 {
    let answer = store.acquire(&[look(&hit(key, PLENTY))]).await.expect("an answer");
    PLENTY.quantity() - answer.standings[0].remaining()
}

fn admitted(answer: &Answer) -> bool {
    answer.standings.iter().all(tollgate::Standing::fits)
}
