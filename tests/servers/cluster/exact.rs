//! A store over a cluster grants exactly what a quota says, by a clock of the test's own, and decides as
//! the crate's arithmetic does.

use std::time::Duration;

use tollgate::RedisStore;

use crate::{
    clocked::{Clocked, Kept, compare, suite},
    differential::{Kind, trace::Place},
    support::cluster::Cluster,
};

const STEPS: usize = 5_000;

fn clocked() -> Clocked {
    Clocked::start(async |clock| {
        let cluster = Cluster::start_behind(clock.fronts(6).await, 3, 3).await;
        let store = RedisStore::builder(cluster.url()).deadline(Duration::from_secs(10));
        (store, Box::new(cluster) as Kept)
    })
}

#[test]
fn a_store_over_a_cluster_decides_as_all_others_do() {
    suite(&mut clocked());
}

#[test]
fn requests_within_a_slot_are_decided_by_a_cluster_as_in_rust() {
    let mut clocked = clocked();
    compare(&mut clocked, Kind::TokenBucket, Place::OneSlot, STEPS);
    compare(&mut clocked, Kind::Mixed, Place::OneSlot, STEPS);
}

#[test]
fn requests_over_several_slots_are_decided_by_a_cluster_as_in_rust() {
    let mut clocked = clocked();
    compare(&mut clocked, Kind::TokenBucket, Place::SeveralSlots, STEPS);
    compare(&mut clocked, Kind::Mixed, Place::SeveralSlots, STEPS);
}
