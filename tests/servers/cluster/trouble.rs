//! Nodes that fail, come back, and change their places, under load.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};
use tollgate::{RedisStore, Store as _, StoreErrorKind};

use super::{PLENTY, builder, hit};
use crate::support::{Load, Report, Running, cluster::Cluster};

const CALLERS: usize = 24;
const KEYS: u32 = 240;
/// A request that takes longer hangs.
const HANG: Duration = Duration::from_secs(5);

/// Keys of all nodes, and whose node each was at first.
type Keys = Arc<Vec<(String, usize)>>;

fn keys(cluster: &Cluster) -> Keys {
    let key = |at: u32| {
        let tag = format!("{{k{at}}}");
        let owner = cluster.owner(cluster.slot(&tag));
        (tag, owner)
    };
    Arc::new((0..KEYS).map(key).collect())
}

/// Callers that tell how requests to keys of `node`, and to others, end.
fn load(store: &RedisStore, keys: &Keys, node: usize) -> Running {
    let (store, keys) = (store.clone(), Arc::clone(keys));
    Load::new(CALLERS).pace(Duration::from_millis(1)).hang_bound(HANG).start(move |_| {
        let (store, keys) = (store.clone(), Arc::clone(&keys));
        async move {
            let (key, owner) = &keys[fastrand::usize(..keys.len())];
            let answer = store.acquire(&[hit(key, PLENTY)]).await;
            match (answer, *owner == node) {
                (Ok(_), true) => "there",
                (Ok(_), false) => "elsewhere",
                (Err(error), theirs) => {
                    let wrong = matches!(
                        error.kind(),
                        StoreErrorKind::Misconfigured | StoreErrorKind::Unexpected
                    );
                    assert!(!wrong, "{key}: {error}");
                    if theirs { "fails there" } else { "fails elsewhere" }
                }
            }
        }
    })
}

/// All keys are answered again, each by the node that now has it.
async fn all_are_answered(store: &RedisStore, keys: &Keys) {
    for (key, _) in keys.iter() {
        let answered = async {
            while store.acquire(&[hit(key, PLENTY)]).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(15), answered).await.unwrap_or_else(|_| panic!("{key}"));
    }
}

/// Nodes that are well go on.
fn check(report: &Report, phase: &str) {
    let [good, bad] = ["elsewhere", "fails elsewhere"].map(|it| report.phase(phase).count(it));
    assert!(good > 100, "{phase}: only {good}");
    assert!(bad * 50 < good, "{phase}: {bad} fail at healthy nodes, {good} do not");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_may_die_stand_still_and_change_their_places() {
    let mut cluster = Cluster::start(3, 3).await;
    let store = builder(&cluster).deadline(Duration::from_millis(250));
    let store = store.connect().await.expect("a cluster");
    let keys = keys(&cluster);
    let slot = cluster.slot(&keys.iter().find(|(_, owner)| *owner == 0).expect("one").0);

    // A primary dies, and its replica takes its place.
    let running = load(&store, &keys, 0);
    sleep(Duration::from_millis(200)).await;
    running.phase("dead");
    cluster.kill(0);
    let heir = cluster.taken_over(slot, 0).await;
    running.phase("replaced");
    all_are_answered(&store, &keys).await;
    let report = running.stop().await;
    check(&report, "dead");
    assert!(report.phase("replaced").count("there") > 0);
    cluster.revive(0).await;
    cluster.settled().await;

    // It is the primary again, by its own wish: nothing fails for long.
    let running = load(&store, &keys, 0);
    cluster.fail_over(0).await;
    cluster.settled().await;
    all_are_answered(&store, &keys).await;
    let report = running.stop().await;
    check(&report, "start");
    assert_ne!(heir, 0);

    // A primary stands still.
    let running = load(&store, &keys, 0);
    sleep(Duration::from_millis(200)).await;
    running.phase("frozen");
    cluster.node(0).freeze();
    cluster.taken_over(slot, 0).await;
    all_are_answered(&store, &keys).await;
    cluster.node(0).thaw();
    cluster.settled().await;
    all_are_answered(&store, &keys).await;
    check(&running.stop().await, "frozen");
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_may_move_and_nodes_may_come_and_go() {
    let mut cluster = Cluster::start(3, 0).await;
    let store = builder(&cluster).deadline(Duration::from_secs(2));
    let store = store.connect().await.expect("a cluster");
    let keys = keys(&cluster);
    let running = load(&store, &keys, 0);
    let new = cluster.add().await;
    let mut slots: Vec<(u16, usize)> =
        keys.iter().map(|(key, owner)| (cluster.slot(key), *owner)).collect();
    slots.sort_unstable();
    slots.dedup();
    // To the new node, and then to the others, in the middle of requests.
    for (slot, owner) in slots.iter().filter(|(_, owner)| *owner == 0).take(40) {
        cluster.move_slot(*slot, *owner, new);
    }
    all_are_answered(&store, &keys).await;
    for (slot, _) in slots.iter().filter(|(_, owner)| *owner == 0).take(40) {
        cluster.move_slot(*slot, new, 1);
    }
    let report = running.stop().await;
    let ends = ["fails there", "fails elsewhere", "there", "elsewhere"];
    let [bad, worse, there, elsewhere] = ends.map(|it| report.phase("start").count(it));
    assert_eq!((bad, worse), (0, 0), "{there} and {elsewhere} were answered");
    assert!(there > 50 && elsewhere > 50, "{there} and {elsewhere}");
}

#[tokio::test]
async fn a_slot_that_nobody_serves_is_waited_for_and_then_an_error() {
    let cluster = Cluster::start(2, 0).await;
    let patient = super::connect(&cluster).await;
    let hasty = builder(&cluster).deadline(Duration::from_millis(100));
    let hasty = hasty.connect().await.expect("a cluster");
    let key = cluster.key_on(0, |at| format!("{{k{at}}}"));
    let slot = cluster.slot(&key).to_string();
    for at in 0..2 {
        cluster.node(at).command(&["CLUSTER", "DELSLOTS", &slot]);
    }
    sleep(Duration::from_millis(300)).await;
    let error = timeout(HANG, hasty.acquire(&[hit(&key, PLENTY)])).await.expect("no hang");
    let error = error.expect_err("nobody serves it");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    let waiting = tokio::spawn(patient.acquire(&[hit(&key, PLENTY)]));
    sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "it is waited for");
    cluster.node(0).command(&["CLUSTER", "ADDSLOTS", &slot]);
    let answer = timeout(HANG, waiting).await.expect("no hang").expect("no panic");
    answer.expect("an answer");
    // The other node hears of it in time.
    all_are_answered(&hasty, &Arc::new(vec![(key, 0)])).await;
}
