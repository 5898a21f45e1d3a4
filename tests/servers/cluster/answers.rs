use std::collections::HashSet;

use tokio::task::JoinSet;
use tollgate::{Quota, Store as _, store::Refund};

use super::{PLENTY, admitted, builder, connect, hit, take, taken};
use crate::support::cluster::Cluster;

const CAPACITY: u64 = 10;
const CALLERS: usize = 64;
const KEYS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_charge_keys_of_all_nodes_at_once_admit_exactly_what_they_hold() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let store = store.clone();
        callers.spawn(async move {
            let mut counts = vec![0; KEYS];
            for (at, count) in counts.iter_mut().enumerate() {
                let key = format!("{{caller{at}}}:k");
                let answer = store.acquire(&[hit(&key, Quota::per_day(CAPACITY))]).await;
                *count += u64::from(admitted(&answer.expect("an answer")));
            }
            counts
        });
    }
    let counts = callers.join_all().await;
    for at in 0..KEYS {
        assert_eq!(counts.iter().map(|counts| counts[at]).sum::<u64>(), CAPACITY, "key {at}");
    }
}

#[tokio::test]
async fn requests_that_gather_share_a_call_only_with_those_of_their_slot() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    // All at once: those of a node gather behind the first of it.
    let keys: Vec<String> = (0..300).map(|at| format!("{{k{}}}:{at}", at % 50)).collect();
    let replies: Vec<_> = keys.iter().map(|key| store.acquire(&[hit(key, PLENTY)])).collect();
    for reply in replies {
        assert!(admitted(&reply.await.expect("an answer")));
    }
    for key in &keys {
        assert_eq!(taken(&store, key).await, 1, "{key}");
    }
}

#[tokio::test]
async fn refunds_and_resets_reach_all_slots() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let keys: Vec<String> = (0..20).map(|at| format!("{{k{at}}}:x")).collect();
    let mut stamps = Vec::new();
    for key in &keys {
        take(&store, key).await.expect("an answer");
        stamps.push(take(&store, key).await.expect("an answer").standings[0].stamp());
    }
    let refund = |(key, stamp): (&String, _)| Refund {
        key: Box::leak(key.clone().into_boxed_str()).as_bytes(),
        meter: hit("", PLENTY).meter,
        units: 1,
        stamp,
    };
    let refunds: Vec<Refund<'_>> = keys.iter().zip(stamps).map(refund).collect();
    store.refund(&refunds).await.expect("an answer");
    for key in &keys {
        assert_eq!(taken(&store, key).await, 1, "{key}");
    }
    let names: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    store.reset(&names).await.expect("an answer");
    for key in &keys {
        assert_eq!(taken(&store, key).await, 0, "{key}");
    }
}

#[tokio::test]
async fn a_part_of_the_store_is_a_node() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let keys: Vec<String> = (0..100).map(|at| format!("{{k{at}}}:x")).collect();
    let parts: Vec<u32> = keys.iter().map(|key| store.shard(key.as_bytes())).collect();
    assert_eq!(parts.iter().collect::<HashSet<_>>(), HashSet::from([&1, &2, &3]));
    for (key, part) in keys.iter().zip(parts) {
        let same = |(other, of): (&String, u32)| {
            let alike = cluster.owner(cluster.slot(other)) == cluster.owner(cluster.slot(key));
            assert_eq!(alike, of == part, "{key} and {other}");
        };
        let other = &keys[0];
        same((other, store.shard(other.as_bytes())));
    }
}

#[tokio::test]
async fn a_store_connects_with_its_first_requests() {
    let cluster = Cluster::shared().await;
    let store = builder(&cluster).connect_lazy().expect("a URL");
    let keys: Vec<String> = (0..50).map(|at| format!("{{k{at}}}:x")).collect();
    let replies: Vec<_> = keys.iter().map(|key| store.acquire(&[hit(key, PLENTY)])).collect();
    for reply in replies {
        assert!(admitted(&reply.await.expect("an answer")));
    }
    store.shutdown().await;
    let error = take(&store, "{k1}:x").await.expect_err("it is shut down");
    assert!(error.to_string().contains("shut down"), "{error}");
}

#[tokio::test]
async fn a_store_with_a_thread_of_its_own_serves_several_runtimes() {
    let cluster = Cluster::shared().await;
    let store = builder(&cluster).own_thread().connect().await.expect("a cluster");
    let served = tokio::task::spawn_blocking(move || {
        for round in 0..3 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let hits = [hit("{a}:x", PLENTY), hit("{b}:x", PLENTY), hit("{c}:x", PLENTY)];
                let answer = store.acquire(&hits).await.expect("an answer");
                let left: Vec<u64> = answer.standings.iter().map(|it| it.remaining()).collect();
                assert_eq!(left, [999 - round; 3]);
            });
        }
    });
    served.await.expect("no panic");
}
