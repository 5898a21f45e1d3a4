//! Sentinels that go away, one after the other.

use std::time::Duration;

use tollgate::{RedisStore, StoreErrorKind};

use super::{patient, takes, to};
use crate::support::sentinel::Topology;

#[tokio::test(flavor = "multi_thread")]
async fn one_sentinel_is_enough_to_connect_and_none_to_go_on() {
    let mut topology = Topology::start().await;
    let url = topology.url();
    let wrong = url.replace("mymaster", "another");
    let error = RedisStore::connect(&wrong).await.expect_err("nobody knows it");
    println!("{error}");
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("`another`"), "{error}");

    let limiter = patient(to(&url)).await;
    assert!(takes(&limiter, "all").await);
    topology.sentinels[0].kill();
    assert!(takes(&patient(to(&url)).await, "two").await);
    topology.sentinels[1].freeze();
    // Time for one that says nothing, on a busy machine.
    let slow = to(&url).connect_timeout(Duration::from_secs(10));
    assert!(takes(&patient(slow).await, "one").await);
    topology.sentinels[1].kill();
    topology.sentinels[2].kill();

    for _ in 0..30 {
        assert!(takes(&limiter, "none").await);
        // Longer than it takes to look for another primary.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let error = to(&url).connect().await.expect_err("there is no sentinel");
    println!("{error}");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("no sentinel"), "{error}");
}
