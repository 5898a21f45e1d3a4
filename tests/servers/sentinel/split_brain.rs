//! A primary that was replaced while it could not be reached, and comes back as if it were one.

#![expect(clippy::disallowed_methods, reason = "what is told is in real time")]

use std::time::Instant;

use super::{is_primary, keys, patient, recovers, takes, to};
use crate::support::{
    RedisServer,
    sentinel::{Topology, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_was_frozen_and_resumed_is_left_before_it_is_demoted() {
    let topology = Topology::start().await;
    let [old, ..] = topology.servers.as_slice() else { panic!("there are three") };
    let limiter = patient(to(&topology.url())).await;
    assert!(takes(&limiter, "first").await);
    assert_eq!(keys(old), 1);

    // Nobody asks meanwhile, so all connections are still there afterwards.
    old.freeze();
    let chosen = topology.failed_over(0).await;
    let new = &topology.servers[chosen];
    let before = keys(new);
    old.thaw();

    let (begun, mut asked) = (Instant::now(), 0);
    while keys(new) == before {
        asked += 1;
        recovers(&limiter, &format!("during {asked}")).await;
    }
    let (took, lost) = (begun.elapsed(), keys(old) - 1);
    if topology.primary() != Some(chosen) {
        println!("on a machine this busy, the sentinels have chosen once more");
        return;
    }
    assert!(is_primary(old), "it was left only because it had to be, after {took:?}");
    println!("the old primary was left after {took:.1?}, having admitted {lost} of {asked}");

    let had = keys(old);
    for at in 0..50 {
        assert!(takes(&limiter, &format!("after {at}")).await);
    }
    let now = keys(old);
    // What it has once it is a replica, it has from the new one.
    if is_primary(old) {
        assert_eq!(now, had, "none of them came from the old primary");
    }
    assert!(keys(new) >= before + 50);

    demoted(old).await;
    let error = old.try_command(&["SET", "x", "y"]).expect_err("it is a replica");
    assert!(error.contains("READONLY"), "{error}");
    assert!(takes(&limiter, "last").await);
    println!("the old primary was demoted after {:.1?}", begun.elapsed());
}

async fn demoted(server: &RedisServer) {
    until("the old primary is demoted", async || !is_primary(server)).await;
}
