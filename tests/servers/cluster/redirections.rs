use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate::{RedisStore, Store as _, StoreErrorKind};

use super::{PATIENCE, PLENTY, admitted, connect, hit, take, taken};
use crate::support::cluster::Cluster;

/// A tag whose slot this node serves, and the prefix does not change.
fn tag(cluster: &Cluster, on: usize) -> String {
    let salt = fastrand::u32(..);
    cluster.key_on(on, |at| format!("{{m{salt}x{at}}}")).trim_matches(['{', '}']).to_owned()
}

fn name(prefix: &str, key: &str) -> String {
    format!("{prefix}:{key}")
}

fn prefix(store: &RedisStore) -> String {
    let text = format!("{store:?}");
    text.split('"').nth(1).expect("a prefix").to_owned()
}

#[tokio::test]
async fn a_slot_that_was_moved_is_followed_with_its_states() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let tag = tag(&cluster, 0);
    let (key, slot) = (format!("{{{tag}}}:x"), cluster.slot(&format!("{{{tag}}}")));
    take(&store, &key).await.expect("an answer");
    let before = store.shard(key.as_bytes());
    cluster.move_slot(slot, 0, 1);
    // The map of the store is stale: each of these is sent to the old node at first.
    let replies: Vec<_> = (0..50).map(|_| store.acquire(&[hit(&key, PLENTY)])).collect();
    for reply in replies {
        assert!(admitted(&timeout(PATIENCE, reply).await.expect("no hang").expect("an answer")));
    }
    assert_eq!(taken(&store, &key).await, 51);
    assert_ne!(store.shard(key.as_bytes()), before);
    cluster.move_slot(slot, 1, 0);
    assert_eq!(taken(&store, &key).await, 51);
    assert_eq!(store.shard(key.as_bytes()), before);
}

#[tokio::test]
async fn a_key_that_has_moved_ahead_of_its_slot_is_asked_for_where_it_is() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let tag = tag(&cluster, 1);
    let slot = cluster.slot(&format!("{{{tag}}}"));
    let [moved, stays, new] = ["moved", "stays", "new"].map(|key| format!("{{{tag}}}:{key}"));
    for key in [&moved, &stays] {
        take(&store, key).await.expect("an answer");
    }
    cluster.begin_move(slot, 1, 2);
    cluster.move_key(&name(&prefix(&store), &moved), 1, 2);
    // Alone, and all at once: then they share a call, which the nodes will not have, as some of its keys
    // are here and some are there.
    for _ in 0..2 {
        for key in [&moved, &stays, &new] {
            let answer = timeout(PATIENCE, take(&store, key)).await.expect("no hang");
            assert!(admitted(&answer.expect("an answer")));
        }
    }
    let replies: Vec<_> =
        (0..60).map(|at| store.acquire(&[hit([&moved, &stays, &new][at % 3], PLENTY)])).collect();
    for reply in replies {
        assert!(admitted(&timeout(PATIENCE, reply).await.expect("no hang").expect("an answer")));
    }
    // The slot is still where it was.
    assert_eq!(cluster.owner(slot), 1);
    cluster.end_move(slot, 1, 2);
    for (key, expected) in [(&moved, 23), (&stays, 23), (&new, 22)] {
        assert_eq!(taken(&store, key).await, expected, "{key}");
    }
    cluster.move_slot(slot, 2, 1);
}

#[tokio::test]
async fn a_request_whose_keys_are_parted_waits_until_they_are_together() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let hasty = RedisStore::builder(cluster.url()).prefix(prefix(&store));
    let hasty = hasty.connect().await.expect("a cluster");
    let tag = tag(&cluster, 2);
    let slot = cluster.slot(&format!("{{{tag}}}"));
    let keys = ["moved", "stays"].map(|key| format!("{{{tag}}}:{key}"));
    let hits = [hit(&keys[0], PLENTY), hit(&keys[1], PLENTY)];
    store.acquire(&hits).await.expect("an answer");
    cluster.begin_move(slot, 2, 0);
    cluster.move_key(&name(&prefix(&store), &keys[0]), 2, 0);
    let error = timeout(PATIENCE, hasty.acquire(&hits)).await.expect("no hang");
    let error = error.expect_err("they are parted");
    assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}");
    assert_eq!(error.shard(), Some(hasty.shard(keys[0].as_bytes())));
    let waiting = tokio::spawn(store.acquire(&hits));
    sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished(), "nobody can decide it");
    cluster.end_move(slot, 2, 0);
    let answer = timeout(PATIENCE, waiting).await.expect("no hang").expect("no panic");
    assert!(admitted(&answer.expect("an answer")));
    for key in &keys {
        assert_eq!(taken(&store, key).await, 2, "{key}");
    }
    cluster.move_slot(slot, 0, 2);
}

#[tokio::test]
async fn a_node_that_forgot_the_script_decides_all_the_same() {
    let cluster = Cluster::start(2, 0).await;
    let store = connect(&cluster).await;
    let tag = tag(&cluster, 0);
    let slot = cluster.slot(&format!("{{{tag}}}"));
    let key = format!("{{{tag}}}:x");
    cluster.begin_move(slot, 0, 1);
    for expected in 1..4 {
        for at in 0..2 {
            cluster.node(at).command(&["SCRIPT", "FLUSH"]);
        }
        // Through `ASKING` as well.
        assert!(admitted(&take(&store, &key).await.expect("an answer")));
        assert_eq!(taken(&store, &key).await, expected);
    }
    assert_eq!(cluster.node(1).command(&["DBSIZE"]), "1");
    cluster.call_off(slot, 0, 1);
}
