//! What callers see while a cluster changes, as a table: with `TOLLGATE_CLUSTER=full`, in release, on a machine
//! that does nothing else. Otherwise the tests of [`trouble`](super::trouble) stand for it.

#![expect(clippy::disallowed_methods, reason = "what is measured is real time")]

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::sleep};
use tollgate::{Key, Limit, Limiter, Quota, RedisStore};

use crate::support::cluster::Cluster;

const CALLERS: usize = 64;
const PACE: Duration = Duration::from_millis(2);
const BEFORE: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(3);
/// An answer that takes longer was none.
const HANG: Duration = Duration::from_secs(2);

/// One request.
struct Seen {
    begun: Instant,
    taken: Duration,
    /// Whether its key was with the node that the event is about.
    there: bool,
    decided: bool,
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_as_a_table() {
    if env::var("TOLLGATE_CLUSTER").as_deref() != Ok("full") {
        return;
    }
    println!(
        "| event | requests | without an answer | longest | decided again after | most after | \
         others decided | their p99 before | during | ratio | scarce |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    run("nothing", async |_| sleep(BEFORE).await).await;
    run("a primary is killed", async |cluster| {
        cluster.kill(0);
        sleep(Duration::from_secs(6)).await;
    })
    .await;
    run("a primary is frozen, and thawed after 6 s", async |cluster| {
        cluster.node(0).freeze();
        sleep(Duration::from_secs(6)).await;
        cluster.node(0).thaw();
    })
    .await;
    run("`CLUSTER FAILOVER`", async |cluster| cluster.fail_over(3).await).await;
    run("1,000 slots move to another node", async |cluster| move_slots(cluster, 1).await).await;
    run("a node is added, and gets 1,000 slots", async |cluster| {
        let new = cluster.add().await;
        move_slots(cluster, new).await;
    })
    .await;
}

async fn move_slots(cluster: &Cluster, to: usize) {
    // Those of the first node are the first of all.
    for slot in 0..1_000 {
        cluster.move_slot(slot, 0, to);
        tokio::task::yield_now().await;
    }
}

async fn run(what: &str, event: impl AsyncFnOnce(&mut Cluster)) {
    let mut cluster = Cluster::start(3, 3).await;
    let store = RedisStore::connect(cluster.url()).await.expect("a cluster");
    let limiter = Limiter::new(store);
    let keys: Vec<(String, bool)> = (0..600)
        .map(|at| {
            let key = format!("user:{at}");
            let tag = format!("{{{}}}", Key::from(&*key).as_str());
            let there = cluster.owner(cluster.slot(&tag)) == 0;
            (key, there)
        })
        .collect();
    let scarce = Limit::new("scarce", Quota::per_day(100));
    let spent = keys.iter().find(|(_, there)| *there).expect("one").0.clone();
    let mut admitted = 0;
    for _ in 0..150 {
        admitted +=
            u32::from(limiter.check(&scarce, &*spent).await.is_ok_and(|it| it.is_allowed()));
    }
    let (keys, stop) = (Arc::new(keys), Arc::new(AtomicBool::new(false)));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(call(limiter.clone(), Arc::clone(&keys), Arc::clone(&stop)));
    }
    sleep(BEFORE).await;
    let begun = Instant::now();
    event(&mut cluster).await;
    sleep(AFTER).await;
    stop.store(true, Ordering::SeqCst);
    let seen: Vec<Seen> = callers.join_all().await.into_iter().flatten().collect();
    for _ in 0..150 {
        admitted +=
            u32::from(limiter.check(&scarce, &*spent).await.is_ok_and(|it| it.is_allowed()));
    }
    tell(what, begun, &seen, admitted);
}

async fn call(
    limiter: Limiter,
    keys: Arc<Vec<(String, bool)>>,
    stop: Arc<AtomicBool>,
) -> Vec<Seen> {
    let plenty = Limit::new("all", Quota::per_second(1_000_000));
    let mut seen = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let (key, there) = &keys[fastrand::usize(..keys.len())];
        let begun = Instant::now();
        let decided = limiter.check(&plenty, &**key).await.is_ok();
        seen.push(Seen { begun, taken: begun.elapsed(), there: *there, decided });
        sleep(PACE).await;
    }
    seen
}

fn tell(what: &str, event: Instant, seen: &[Seen], admitted: u32) {
    let hung = seen.iter().filter(|one| one.taken > HANG).count();
    assert_eq!(hung, 0, "{what}: requests hang");
    let longest = seen.iter().map(|one| one.taken).max().unwrap_or_default();
    // Those to the node in question that went undecided, by when they ended.
    let failed = seen.iter().filter(|one| one.there && !one.decided);
    let last = failed.map(|one| one.begun + one.taken).max();
    let again = last.map_or(Duration::ZERO, |last| last.saturating_duration_since(event));
    let most = most_after(event, seen);
    let others =
        |after: bool| seen.iter().filter(move |one| !one.there && (one.begun >= event) == after);
    let share =
        others(true).filter(|one| one.decided).count() as f64 / others(true).count().max(1) as f64;
    let p99 = |after: bool| {
        let mut taken: Vec<Duration> = others(after).map(|one| one.taken).collect();
        taken.sort_unstable();
        taken.get(taken.len() * 99 / 100).copied().unwrap_or_default()
    };
    let (before, during) = (p99(false), p99(true));
    println!(
        "| {what} | {} | {hung} | {longest:.1?} | {again:.1?} | {most:.1?} | {:.2} % | {before:.1?} | \
         {during:.1?} | {:.2} | {admitted} of 100 |",
        seen.len(),
        share * 100.0,
        during.as_secs_f64() / before.as_secs_f64()
    );
}

/// From when on two of three requests to the node in question were decided, in each tenth of a second.
fn most_after(event: Instant, seen: &[Seen]) -> Duration {
    let mut tenths: Vec<(u32, u32)> = Vec::new();
    for one in seen.iter().filter(|one| one.there && one.begun >= event) {
        let at = (one.begun.duration_since(event).as_millis() / 100) as usize;
        if tenths.len() <= at {
            tenths.resize(at + 1, (0, 0));
        }
        tenths[at].0 += u32::from(one.decided);
        tenths[at].1 += 1;
    }
    let bad = tenths.iter().rposition(|(good, all)| 3 * good < 2 * all);
    Duration::from_millis(bad.map_or(0, |at| (at as u64 + 1) * 100))
}
