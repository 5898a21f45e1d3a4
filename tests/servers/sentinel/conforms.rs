//! A replica that became the primary decides as any other server does, by a clock of the test's own.

use std::time::Duration;

use tollgate::RedisStore;

use crate::{
    clocked::{Clocked, Kept, compare, suite},
    differential::{Kind, trace::Place},
    support::sentinel::{NAME, Topology},
};

const STEPS: usize = 5_000;

fn failed_over() -> Clocked {
    Clocked::start(async |clock| {
        let mut topology = Topology::start_behind(clock.fronts(3).await).await;
        topology.servers[0].kill();
        topology.failed_over(0).await;
        for sentinel in &topology.sentinels {
            // What is between them stands still while the test counts.
            let patience = ["SENTINEL", "SET", NAME, "down-after-milliseconds", "60000"];
            sentinel.command(&patience).expect("a sentinel that runs");
        }
        let store = RedisStore::builder(topology.url()).deadline(Duration::from_secs(10));
        (store, Box::new(topology) as Kept)
    })
}

#[test]
fn a_replica_that_became_the_primary_decides_as_any_other_server_does() {
    suite(&mut failed_over());
}

#[test]
fn requests_by_sentinel_are_decided_as_in_rust() {
    let mut clocked = failed_over();
    compare(&mut clocked, Kind::TokenBucket, Place::OneServer, STEPS);
    compare(&mut clocked, Kind::Mixed, Place::OneServer, STEPS);
}
