//! The calls of a batch go to their node in one write, each for a slot of its own.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tollgate::{RedisStore, Store as _, StoreErrorKind, store::Reply};

use super::{PATIENCE, PLENTY, admitted, builder, connect, hit, look, take, taken};
use crate::support::{
    cluster::Cluster,
    fake::{Act, FakeServer, ready},
};

/// Requests of the largest batch.
const BATCH: usize = 64;

/// So many keys of one node, each in a slot of its own.
fn keys(cluster: &Cluster, on: usize, count: usize) -> Vec<String> {
    let (salt, mut slots, mut at) = (fastrand::u32(..), HashSet::new(), 0..);
    let mut next = || {
        loop {
            let number: u32 = at.next().expect("there are many");
            let key = format!("{{p{salt}x{number}}}");
            let slot = cluster.slot(&key);
            if cluster.owner(slot) == on && slots.insert(slot) {
                return key;
            }
        }
    };
    (0..count).map(|_| next()).collect()
}

/// Requests that all wait for each other until this task yields, behind one that would go alone, and never
/// does: nobody polls it. It takes nothing, should it go with others.
fn together(store: &RedisStore, keys: &[String]) -> Vec<Reply> {
    let _held = store.acquire(&[look(&hit(&keys[0], PLENTY))]);
    keys.iter().map(|key| store.acquire(&[hit(key, PLENTY)])).collect()
}

async fn all_admitted(replies: Vec<Reply>) {
    for reply in replies {
        let answer = timeout(PATIENCE, reply).await.expect("no hang");
        assert!(admitted(&answer.expect("an answer")));
    }
}

#[tokio::test]
async fn a_batch_is_answered_whatever_becomes_of_some_of_its_slots() {
    let cluster = Cluster::start(3, 0).await;
    let store = connect(&cluster).await;
    let mut keys = keys(&cluster, 0, 26);
    let slots: Vec<u16> = keys[..3].iter().map(|key| cluster.slot(key)).collect();
    let [parted, asked, gone] = slots[..] else { unreachable!("there are three") };
    // Of one slot, some keys have moved ahead; of another one, the only one; and a third one is gone.
    let moved = format!("{}:moved", keys[0]);
    keys.extend([moved.clone(), format!("{}:new", keys[0])]);
    for key in [&keys[0], &keys[1], &moved] {
        take(&store, key).await.expect("an answer");
    }
    let text = format!("{store:?}");
    let prefix = text.split('"').nth(1).expect("a prefix");
    for (slot, key) in [(parted, &moved), (asked, &keys[1])] {
        cluster.begin_move(slot, 0, 1);
        cluster.move_key(&format!("{prefix}:{key}"), 0, 1);
    }
    cluster.move_slot(gone, 0, 2);
    let twice = [&keys[..], &keys[..]].concat();
    let mut replies = together(&store, &twice);
    // Nobody can decide this one yet, and nobody waits for it.
    let waits = store.acquire(&[hit(&keys[0], PLENTY), hit(&moved, PLENTY)]);
    assert!(replies.len() < BATCH);
    let waits = tokio::spawn(waits);
    for _ in 0..3 {
        all_admitted(replies).await;
        replies = together(&store, &twice);
    }
    all_admitted(replies).await;
    assert!(!waits.is_finished(), "its keys are parted");
    for slot in [parted, asked] {
        cluster.end_move(slot, 0, 1);
    }
    let answer = timeout(PATIENCE, waits).await.expect("no hang").expect("no panic");
    assert!(admitted(&answer.expect("an answer")));
    for key in &keys {
        let before = u64::from([&keys[0], &keys[1], &moved].contains(&key));
        let waited = u64::from([&keys[0], &moved].contains(&key));
        assert_eq!(taken(&store, key).await, before + 8 + waited, "{key}");
    }
}

#[tokio::test]
async fn a_node_that_forgot_the_script_is_sent_it_once_for_a_batch() {
    let cluster = Cluster::start(1, 0).await;
    let store = connect(&cluster).await;
    let keys = keys(&cluster, 0, BATCH);
    take(&store, &keys[0]).await.expect("an answer");
    for _ in 0..2 {
        cluster.node(0).command(&["SCRIPT", "FLUSH"]);
        cluster.node(0).command(&["CONFIG", "RESETSTAT"]);
        all_admitted(together(&store, &keys)).await;
        let info = cluster.node(0).command(&["INFO", "commandstats"]);
        let ran = |command: &str| info.lines().any(|line| line.starts_with(command));
        // Servers before 7.0 do not tell the one from what else is done with scripts.
        assert!(ran("cmdstat_script|load:calls=1,") || ran("cmdstat_script:calls=1,"), "{info}");
        assert!(!ran("cmdstat_eval:"), "{info}");
    }
    assert_eq!(taken(&store, &keys[1]).await, 2);
}

const CHARGED: &[u8] = b"*2\r\n:1700000000000000\r\n:0\r\n";

/// A cluster of one node, which does with decisions about one key what this says.
async fn fake(
    decide: impl Fn(&[String]) -> &'static [u8] + Send + Sync + 'static,
) -> (FakeServer, RedisStore) {
    let port = Arc::new(Mutex::new(String::new()));
    let own = Arc::clone(&port);
    let server = FakeServer::start(move |command| match command[0].as_str() {
        "CLUSTER" => {
            let port = own.lock().unwrap();
            let node = format!("*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$2\r\nid\r\n");
            Act::Reply(format!("*1\r\n*3\r\n:0\r\n:16383\r\n{node}").into_bytes())
        }
        "EVALSHA" | "EVAL" if command[2] == "1" => Act::Reply(decide(command).to_vec()),
        _ => ready(command),
    })
    .await;
    let url = server.url();
    url.rsplit(':').next().unwrap().clone_into(&mut port.lock().unwrap());
    let store = RedisStore::builder(url.replace("redis://", "redis+cluster://"));
    let store = store.deadline(PATIENCE).connect_timeout(PATIENCE).connect().await;
    let store = store.expect("a fake");
    (server, store)
}

fn some_keys() -> Vec<String> {
    (0..20).map(|at| format!("{{k{at}}}")).collect()
}

#[tokio::test]
async fn a_node_that_keeps_no_script_gets_it_with_each_call() {
    let (_server, store) = fake(|command| match command[0].as_str() {
        "EVAL" => CHARGED,
        _ => b"-NOSCRIPT No matching script.\r\n",
    })
    .await;
    all_admitted(together(&store, &some_keys())).await;
}

#[tokio::test]
async fn an_error_is_that_of_its_slot_only() {
    let (_server, store) = fake(|command| match command[3].as_str() {
        key if key.contains("{k3}") => b"-OOM command not allowed\r\n",
        _ => CHARGED,
    })
    .await;
    for (at, reply) in together(&store, &some_keys()).into_iter().enumerate() {
        match timeout(PATIENCE, reply).await.expect("no hang") {
            Ok(answer) => assert!(at != 3 && admitted(&answer), "{at}"),
            Err(error) => {
                assert_eq!((at, error.kind()), (3, StoreErrorKind::OutOfMemory), "{error}");
                assert_eq!(error.shard(), Some(1), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_batch_ends_with_its_node_or_with_its_deadline() {
    let mut cluster = Cluster::start(2, 0).await;
    let keys = keys(&cluster, 0, BATCH);
    let hasty = builder(&cluster).deadline(Duration::from_millis(100));
    let hasty = hasty.connect().await.expect("a cluster");
    let patient = builder(&cluster).deadline(6 * PATIENCE).connect().await.expect("a cluster");
    let part = hasty.shard(keys[0].as_bytes());
    for store in [&hasty, &patient] {
        all_admitted(together(store, &keys)).await;
    }
    cluster.node(0).freeze();
    // All at once: one after the other would take longer than any of them.
    let mut callers = JoinSet::new();
    together(&hasty, &keys).into_iter().for_each(|reply| drop(callers.spawn(reply)));
    let ended = timeout(PATIENCE, callers.join_all()).await.expect("no hang");
    for answer in ended {
        let error = answer.expect_err("the node stands still");
        assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
        assert_eq!(error.shard(), Some(part), "{error}");
    }
    let mut callers = JoinSet::new();
    together(&patient, &keys).into_iter().for_each(|reply| drop(callers.spawn(reply)));
    sleep(Duration::from_millis(50)).await;
    cluster.kill(0);
    let ended = timeout(PATIENCE, callers.join_all()).await.expect("no hang");
    for answer in ended {
        let error = answer.expect_err("the node is gone");
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_away_takes_no_answer_from_others() {
    const ROUNDS: u64 = 60;
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let keys = keys(&cluster, 1, 40);
    let mut answered = vec![0; keys.len()];
    for _ in 0..ROUNDS {
        let mut callers = JoinSet::new();
        for (at, reply) in together(&store, &keys).into_iter().enumerate() {
            let gone = fastrand::bool().then(|| Duration::from_micros(fastrand::u64(..1_500)));
            callers.spawn(async move {
                let answer = timeout(gone.unwrap_or(PATIENCE), reply).await;
                assert!(answer.is_ok() || gone.is_some(), "a request hung");
                answer.ok().map(|answer| (at, admitted(&answer.expect("an answer"))))
            });
        }
        for (at, admitted) in callers.join_all().await.into_iter().flatten() {
            assert!(admitted);
            answered[at] += 1;
        }
    }
    for (key, answered) in keys.iter().zip(answered) {
        let taken = taken(&store, key).await;
        assert!((answered..=ROUNDS).contains(&taken), "{key}: {answered} of {taken}");
    }
}
