//! Nothing stays of a store that is not used any more.

use std::time::Duration;

use tokio::{runtime::Handle, time::sleep};
use tollgate::RedisStore;

use super::{patient, takes};
use crate::support::sentinel::{Topology, until};

async fn all_ends() {
    until("all tasks, and with them all connections, end", async || {
        Handle::current().metrics().num_alive_tasks() == 0
    })
    .await;
}

#[tokio::test]
async fn connections_to_sentinels_end_with_the_store() {
    let topology = Topology::start().await;
    for is_told in [true, false] {
        let limiter = patient(RedisStore::builder(topology.url())).await;
        for _ in 0..3 {
            // So long that the sentinels are asked again.
            sleep(Duration::from_millis(1_100)).await;
            assert!(takes(&limiter, "somebody").await);
        }
        if is_told {
            limiter.shutdown().await;
            all_ends().await;
        }
        drop(limiter);
        all_ends().await;
    }
}
