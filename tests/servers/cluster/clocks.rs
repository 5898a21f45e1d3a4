//! Nodes whose clocks differ: each state is only ever compared with the clock of its node.

#![expect(clippy::disallowed_methods, reason = "windows end by the system's clock")]

use std::{ffi::OsString, time::Duration};

use tokio::time::{sleep, timeout};
use tollgate::{
    Algorithm, Limit, Limiter, Lockout, Quota, RedisStore, Source, Standing, Store as _,
    algorithm::Meter,
    store::{Hit, Refund},
};

use super::{PATIENCE, admitted, builder, connect, until};
use crate::{clock::Clock, support::cluster::Cluster};

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::TokenBucket,
    Algorithm::SlidingLog,
    Algorithm::SlidingCounter,
    Algorithm::FixedWindow,
];
const UNITS: u64 = 5;
/// Nothing comes back within a test.
const PERIOD: Duration = Duration::from_secs(3_600);

/// The clocks of nodes, by their places.
struct Clocks(Vec<Option<Clock>>);

impl Clocks {
    /// Off by so many seconds. None, where clocks cannot be set.
    fn new(offsets: &[i64]) -> Option<Self> {
        let clock = |offset: &i64| {
            let clock = Clock::new()?;
            clock.step(*offset);
            Some(clock)
        };
        let clocks: Vec<_> = offsets.iter().map(clock).collect();
        clocks.iter().all(Option::is_some).then_some(Self(clocks))
    }

    fn environment(&self, at: usize) -> Vec<(&'static str, OsString)> {
        self.0[at].as_ref().map(Clock::environment).unwrap_or_default()
    }

    async fn cluster(&self, primaries: usize, replicas: usize) -> Cluster {
        Cluster::start_each_in(primaries, replicas, |at| self.environment(at)).await
    }
}

/// Windows end at each hour of a clock, and these differ by tens of minutes: no test may run into that.
async fn no_window_ends() {
    let left = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        600 - now.expect("a time after 1970").as_secs() % 600
    };
    while left() < 60 {
        sleep(Duration::from_secs(1)).await;
    }
}

fn seconds(cluster: &Cluster, at: usize) -> i64 {
    let told = cluster.node(at).command(&["TIME"]);
    told.lines().next().and_then(|line| line.parse().ok()).expect("a time")
}

fn hour() -> Quota {
    Quota::per_hour(UNITS)
}

fn key(cluster: &Cluster, at: usize) -> String {
    cluster.key_on(at, |number| format!("{{k{number}}}"))
}

/// What is told lies within what a quota can come to: a counter goes by two of its windows.
fn sane(standing: &Standing, meter: &Meter) {
    let windows = if matches!(meter, Meter::SlidingCounter(_)) { 2 } else { 1 };
    let (wait, longest) = (standing.wait().expect("it comes back"), windows * PERIOD);
    assert!(wait <= longest && standing.reset() <= longest, "{standing:?}: {meter:?}");
}

/// How many units of a key are admitted, until it denies.
async fn drained(store: &RedisStore, hits: &[Hit<'_>]) -> u64 {
    for admissions in 0..100 {
        let answer = store.acquire(hits).await.expect("an answer");
        if !admitted(&answer) {
            answer.standings.iter().for_each(|standing| sane(standing, &hits[0].meter));
            return admissions;
        }
    }
    panic!("nothing denies {hits:?}");
}

#[tokio::test]
async fn keys_of_each_node_are_limited_by_its_own_clock() {
    let Some(clocks) = Clocks::new(&[0, 600, -600]) else { return };
    let cluster = clocks.cluster(3, 0).await;
    no_window_ends().await;
    let ahead = seconds(&cluster, 1) - seconds(&cluster, 2);
    assert!((1_190..1_210).contains(&ahead), "{ahead} s");
    let store = connect(&cluster).await;
    let tags = [0, 1, 2].map(|at| key(&cluster, at));
    for algorithm in ALGORITHMS {
        let meter = algorithm.meter(hour());
        for tag in &tags {
            let name = format!("{tag}:{algorithm:?}");
            let hit = Hit::new(name.as_bytes(), meter, 1);
            let first = store.acquire(&[hit]).await.expect("an answer");
            assert_eq!(first.standings[0].remaining(), UNITS - 1);
            sane(&first.standings[0], &meter);
            assert_eq!(drained(&store, &[hit]).await, UNITS - 1, "{name}");
        }
        // Of all nodes at once, in each order: what one denies, the others get back.
        for denies in 0..3 {
            let names: Vec<String> =
                tags.iter().map(|tag| format!("{tag}:{algorithm:?}:{denies}")).collect();
            let mut hits: Vec<Hit<'_>> =
                names.iter().map(|name| Hit::new(name.as_bytes(), meter, 1)).collect();
            assert_eq!(drained(&store, &[hits[denies]]).await, UNITS);
            let all = store.acquire(&hits).await.expect("an answer");
            assert!(!admitted(&all));
            for (at, standing) in all.standings.iter().enumerate() {
                assert_eq!(standing.fits(), at != denies, "{at} of {all:?}");
                sane(standing, &meter);
            }
            hits.remove(denies);
            // Given back by stamps of the node that charged.
            let charged = store.acquire(&hits).await.expect("an answer");
            assert!(admitted(&charged));
            assert!(charged.standings.iter().all(|it| it.remaining() == UNITS - 1), "{charged:?}");
            let refund = |(hit, standing): (&Hit<'_>, &Standing)| Refund {
                key: Vec::leak(hit.key.to_vec()),
                meter,
                units: 1,
                stamp: standing.stamp(),
            };
            let refunds: Vec<Refund<'_>> =
                hits.iter().zip(&charged.standings).map(refund).collect();
            store.refund(&refunds).await.expect("an answer");
            for hit in hits {
                assert_eq!(drained(&store, &[hit]).await, UNITS, "{hit:?}");
            }
        }
    }
}

#[tokio::test]
async fn denials_are_remembered_for_as_long_as_they_hold_whatever_the_clock() {
    let Some(clocks) = Clocks::new(&[0, 600, -600]) else { return };
    let cluster = clocks.cluster(3, 0).await;
    let store = builder(&cluster).connect().await.expect("a cluster");
    let limiter = Limiter::builder(store).remember_denials(Duration::from_secs(60));
    let limiter = limiter.breaker(None).build();
    let period = Duration::from_secs(3);
    for algorithm in ALGORITHMS {
        let name = format!("{algorithm:?}");
        let quota = Quota::new(1, period).expect("a quota");
        let limit = Limit::new(name.as_str(), quota).algorithm(algorithm);
        let names: Vec<String> = (0..20).map(|at| format!("caller {at}")).collect();
        for name in &names {
            assert!(limiter.check(&limit, name.as_str()).await.expect("an answer").is_allowed());
        }
        let mut remembered = 0;
        for name in &names {
            for _ in 0..10 {
                let again = limiter.check(&limit, name.as_str()).await.expect("an answer");
                // On a busy machine, its time may have come.
                if !again.is_allowed() {
                    // A counter takes the window before into account.
                    let wait = again.wait().expect("it comes back");
                    assert!(wait <= 2 * period, "{again:?}");
                    remembered += u32::from(again.source() == Source::Cache);
                }
            }
        }
        assert!(remembered > 20, "only {remembered} of 200 were remembered");
        for name in &names {
            until("it is admitted again", async || {
                limiter.check(&limit, name.as_str()).await.expect("an answer").is_allowed()
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_with_another_clock_locks_nobody_and_admits_one_burst_more_at_most() {
    // The replicas of the first and the second node, an hour behind and an hour ahead.
    let Some(clocks) = Clocks::new(&[0, 0, 0, -3_600, 3_600]) else { return };
    let cluster = clocks.cluster(3, 2).await;
    no_window_ends().await;
    let store = builder(&cluster).connect().await.expect("a cluster");
    let short = Quota::new(UNITS, Duration::from_secs(4)).expect("a quota");
    let lockout = Lockout::new(Duration::from_secs(4)).after(2);
    let mut counted: Vec<(String, Meter)> = Vec::new();
    for node in 0..2 {
        let tag = key(&cluster, node);
        for algorithm in ALGORITHMS {
            counted.push((format!("{tag}:{algorithm:?}"), algorithm.meter(hour())));
        }
    }
    let hit =
        |(name, meter): &(String, Meter)| Hit::new(Vec::leak(name.clone().into_bytes()), *meter, 1);
    for one in &counted {
        assert_eq!(drained(&store, &[hit(one)]).await, UNITS, "{one:?}");
    }
    let (names, locks): (Vec<String>, Vec<String>) = counted
        .iter()
        .map(|(name, _)| (format!("{name}:short"), format!("{name}:short:lk")))
        .unzip();
    let short: Vec<[Hit<'_>; 2]> = (0..counted.len())
        .map(|at| {
            let meter = ALGORITHMS[at % 4].meter(short);
            let lock = Meter::Lock(lockout.lock(short));
            [Hit::new(names[at].as_bytes(), meter, 1), Hit::new(locks[at].as_bytes(), lock, 1)]
        })
        .collect();
    for hits in &short {
        while admitted(&store.acquire(hits).await.expect("an answer")) {}
        _ = store.acquire(hits).await.expect("an answer");
    }
    for (node, replica) in [(0, 3), (1, 4)] {
        // What was written has reached it.
        cluster.node(node).command(&["WAIT", "1", "5000"]);
        cluster.fail_over(replica).await;
    }
    cluster.settled().await;
    let apart = seconds(&cluster, 4) - seconds(&cluster, 3);
    assert!((7_190..7_210).contains(&apart), "{apart} s");
    for one in &counted {
        let more = drained(&store, &[hit(one)]).await;
        println!("{}: {more} more", one.0);
        assert!(more <= UNITS, "{one:?}: {more} more");
    }
    // Nobody is locked for longer than all comes back, and a lock ends.
    for hits in &short {
        let again = async {
            while !admitted(&store.acquire(hits).await.expect("an answer")) {
                sleep(Duration::from_millis(250)).await;
            }
        };
        timeout(PATIENCE, again).await.unwrap_or_else(|_| panic!("{hits:?} stay locked"));
    }
}
