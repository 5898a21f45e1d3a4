//! Requests whose states lie in several slots.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tollgate::{
    Algorithm, Lockout, MemoryStore, Quota, RedisStore, Standing, Store as _, StoreErrorKind,
    algorithm::Meter,
    store::{Hit, Refund},
};

use super::{PATIENCE, PLENTY, admitted, builder, connect, hit, look, taken, until};
use crate::support::cluster::Cluster;

const REQUESTS: usize = 1_500;

/// What a key is counted by, and the lock that guards it.
struct Counted {
    name: String,
    meter: Meter,
    lock: Option<(String, Meter)>,
}

fn counted(at: usize) -> Counted {
    let algorithms = [
        Algorithm::TokenBucket,
        Algorithm::SlidingLog,
        Algorithm::SlidingCounter,
        Algorithm::FixedWindow,
    ];
    let quota = Quota::per_day(8 + at as u64);
    let name = format!("{{k{at}}}:x");
    let lock = Lockout::new(Duration::from_secs(200_000)).after(3).lock(quota);
    let lock = at.is_multiple_of(5).then(|| (format!("{name}:lk"), Meter::Lock(lock)));
    Counted { name, meter: algorithms[at % 4].meter(quota), lock }
}

/// What does not depend on when it was asked.
fn told(standings: &[Standing]) -> Vec<(bool, u64, Option<bool>, bool)> {
    let told = |it: &Standing| {
        let wait = it.wait().map(|wait| wait.is_zero());
        (it.fits(), it.remaining(), wait, it.reset().is_zero())
    };
    standings.iter().map(told).collect()
}

/// One server of one store decides each request at once; whatever the slots, a cluster says the same.
#[tokio::test]
async fn all_limits_of_a_request_are_charged_or_none_as_by_one_server() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let model = MemoryStore::new();
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut allowed, mut denied, mut locked) = (0, 0, 0);
    let mut all: Vec<Counted> = (0..12).map(counted).collect();
    for number in 0..REQUESTS {
        if number % 100 == 0 {
            for key in &all {
                let names = [Some(&key.name), key.lock.as_ref().map(|(name, _)| name)];
                let names: Vec<&[u8]> =
                    names.into_iter().flatten().map(|it| it.as_bytes()).collect();
                store.reset(&names).await.expect("an answer");
                model.reset(&names).await.expect("an answer");
            }
        }
        rng.shuffle(&mut all);
        let mut hits = Vec::new();
        for key in &all[..rng.usize(1..6)] {
            let cost = if rng.u8(..20) == 0 { 40 } else { rng.u64(..4) };
            let shadow = key.lock.is_none() && rng.u8(..5) == 0;
            hits.push(Hit { shadow, ..Hit::new(key.name.as_bytes(), key.meter, cost) });
            if let Some((name, lock)) = &key.lock {
                hits.push(Hit::new(name.as_bytes(), *lock, cost));
            }
        }
        let context = format!("seed {seed}, request {number}: {hits:?}");
        let expected = model.acquire(&hits).await.expect("an answer");
        let answer =
            store.acquire(&hits).await.unwrap_or_else(|error| panic!("{error}: {context}"));
        assert_eq!(told(&answer.standings), told(&expected.standings), "{context}");
        let denies = |(hit, it): (&Hit<'_>, &Standing)| !hit.shadow && !it.fits();
        let denies = hits.iter().zip(&expected.standings).any(denies);
        *(if denies { &mut denied } else { &mut allowed }) += 1;
        let locks = hits.iter().zip(&expected.standings);
        locked += locks.filter(|(hit, it)| hit.meter.guards() && !it.fits()).count();
        // What was given back can be given back no second time.
        if !denies && rng.bool() {
            let refunds: Vec<Refund<'_>> = hits
                .iter()
                .zip(&answer.standings)
                .zip(&expected.standings)
                .filter(|((hit, it), _)| !hit.meter.guards() && hit.cost > 0 && it.fits())
                .map(|((hit, it), _)| Refund {
                    key: hit.key,
                    meter: hit.meter,
                    units: hit.cost,
                    stamp: it.stamp(),
                })
                .collect();
            let same: Vec<Refund<'_>> = refunds
                .iter()
                .map(|refund| {
                    let at =
                        hits.iter().position(|hit| hit.key == refund.key).expect("it is there");
                    Refund { stamp: expected.standings[at].stamp(), ..*refund }
                })
                .collect();
            store.refund(&refunds).await.expect("an answer");
            model.refund(&same).await.expect("an answer");
        }
    }
    let few = REQUESTS / 8;
    assert!(allowed > few && denied > few && locked > 10, "{allowed}, {denied}, {locked}");
}

#[tokio::test]
async fn a_lock_lies_where_its_limit_does() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let lock = Meter::Lock(Lockout::new(Duration::from_secs(60)).lock(Quota::per_minute(1)));
    let hits = [hit("{a}:x", PLENTY), Hit::new(b"{b}:x:lk", lock, 1)];
    let error = store.acquire(&hits).await.expect_err("they are parted");
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert_eq!(taken(&store, "{a}:x").await, 0);
}

#[tokio::test]
async fn who_goes_away_leaves_nothing_charged_by_halves() {
    let cluster = Cluster::shared().await;
    let store = connect(&cluster).await;
    let keys = [0, 1, 2].map(|on| cluster.key_on(on, |at| format!("{{k{at}}}")));
    let hits = keys.each_ref().map(|key| hit(key, PLENTY));
    for _ in 0..300 {
        let within = Duration::from_micros(fastrand::u64(..1_500));
        _ = timeout(within, store.acquire(&hits)).await;
    }
    // The last of them may still be under way.
    until("all keys were charged alike", async || {
        let mut counts = Vec::new();
        for key in &keys {
            counts.push(taken(&store, key).await);
        }
        counts.iter().all(|count| *count == counts[0])
    })
    .await;
}

/// The first limit has enough, the second is used up, and its node goes in the middle.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_never_admits_more_and_gets_back_what_others_denied() {
    const CALLERS: u64 = 32;
    const EACH: u64 = 320;
    let mut cluster = Cluster::start(3, 0).await;
    let store = connect(&cluster).await;
    let first = cluster.key_on(0, |at| format!("{{k{at}}}"));
    let second = cluster.key_on(1, |at| format!("{{k{at}}}"));
    let limits = [hit(&first, PLENTY), hit(&second, Quota::per_day(1))];
    store.acquire(&limits[1..]).await.expect("an answer");
    let admissions = Arc::new(AtomicU64::new(0));
    let made = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (store, admissions, made) = (store.clone(), Arc::clone(&admissions), Arc::clone(&made));
        let (first, second) = (first.clone(), second.clone());
        callers.spawn(async move {
            for number in 0..EACH {
                made.fetch_add(1, Ordering::SeqCst);
                let hits = [hit(&first, PLENTY), hit(&second, Quota::per_day(1))];
                let within = match fastrand::u8(..3) {
                    0 => Duration::from_micros(fastrand::u64(..5_000)),
                    _ => PATIENCE,
                };
                // Some only ask the first limit, which is all that admits.
                let hits = if number % 10 == 0 { &hits[..1] } else { &hits[..] };
                let within = if hits.len() == 1 { PATIENCE } else { within };
                match timeout(within, store.acquire(hits)).await {
                    Ok(Ok(answer)) if admitted(&answer) => {
                        assert_eq!(hits.len(), 1, "the second limit is used up");
                        admissions.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok(Err(error)) if hits.len() == 1 => panic!("the first node is well: {error}"),
                    Ok(_) => {}
                    Err(_) => assert!(within < PATIENCE, "a request hung"),
                }
            }
        });
    }
    while made.load(Ordering::SeqCst) < CALLERS * EACH / 2 {
        sleep(Duration::from_millis(1)).await;
    }
    cluster.kill(1);
    while let Some(ended) = callers.join_next().await {
        ended.expect("no panic");
    }
    // All that was charged for others is back, as its own node was well all the time.
    let admissions = admissions.load(Ordering::SeqCst);
    assert!(admissions <= PLENTY.quantity(), "{admissions} were admitted");
    until("all that was not admitted is back", async || {
        let taken = taken(&store, &first).await;
        assert!(taken >= admissions, "{taken} are taken, {admissions} were admitted");
        taken == admissions
    })
    .await;
}

/// A node that stands still charges late, and nobody hears of it: these units come back with the refill.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_withheld_is_bounded_and_comes_back() {
    let cluster = Cluster::start(2, 0).await;
    let store: RedisStore =
        builder(&cluster).deadline(Duration::from_millis(50)).connect().await.expect("a cluster");
    let quota = Quota::new(600, Duration::from_secs(3)).expect("a quota");
    let key = cluster.key_on(0, |at| format!("{{k{at}}}"));
    let other = cluster.key_on(1, |at| format!("{{k{at}}}"));
    let used_up = Quota::per_day(1);
    store.acquire(&[hit(&other, used_up)]).await.expect("an answer");
    cluster.node(0).freeze();
    let mut unanswered = 0;
    for _ in 0..20 {
        let answer = timeout(PATIENCE, store.acquire(&[hit(&key, quota), hit(&other, used_up)]));
        match answer.await.expect("no hang") {
            Ok(_) => panic!("the first node stands still"),
            Err(error) => {
                assert!(matches!(
                    error.kind(),
                    StoreErrorKind::Timeout | StoreErrorKind::Unreachable
                ));
                assert_eq!(error.shard(), Some(store.shard(key.as_bytes())), "{error}");
                unanswered += 1;
            }
        }
        // The node that is well goes on.
        let seen = timeout(PATIENCE, store.acquire(&[hit(&other, used_up)])).await;
        assert!(!admitted(&seen.expect("no hang").expect("an answer")));
    }
    cluster.node(0).thaw();
    until("the units are back", async || {
        let Ok(answer) = store.acquire(&[look(&hit(&key, quota))]).await else { return false };
        let left = answer.standings[0].remaining();
        assert!(left >= 600 - unanswered, "{left} are left, {unanswered} were not answered");
        left == 600
    })
    .await;
}
