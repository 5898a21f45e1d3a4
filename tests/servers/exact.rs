//! The scripts grant exactly what a quota says.

#![cfg(test)]

#[path = "../conformance/exact.rs"]
mod conformance;

use tollgate::{Quota, Standing, Timestamp, algorithm::TokenBucket, store::Hit};

use self::conformance::Buckets;
use crate::{
    script::{Joined, Request},
    support::RedisServer,
};

impl Buckets for Joined {
    fn ask(&mut self, quota: Quota, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        let bucket = TokenBucket::new(quota);
        let batch: Vec<Request<'_>> = asks
            .iter()
            .map(|(key, cost)| vec![Hit { key: key.as_bytes(), bucket, cost: *cost }])
            .collect();
        let (found, _) = self.acquire(&batch, now);
        batch.iter().zip(found).map(|(request, found)| found.standing(&request[0])).collect()
    }
}

#[tokio::test]
async fn all_units_and_no_more() {
    let server = RedisServer::start().await;
    conformance::all_units_and_no_more(&mut Joined::load(&server));
}

#[tokio::test]
async fn waits_to_the_microsecond() {
    let server = RedisServer::start().await;
    conformance::waits_to_the_microsecond(&mut Joined::load(&server));
}

#[tokio::test]
async fn patient_callers_get_the_rate() {
    let server = RedisServer::start().await;
    conformance::patient_callers_get_the_rate(&mut Joined::load(&server));
}

#[tokio::test]
async fn hasty_callers_get_the_rate() {
    let server = RedisServer::start().await;
    conformance::hasty_callers_get_the_rate(&mut Joined::load(&server));
}

#[tokio::test]
async fn no_step_back_locks_for_longer_than_a_refill() {
    let server = RedisServer::start().await;
    conformance::no_step_back_locks_for_longer_than_a_refill(&mut Joined::load(&server));
}
