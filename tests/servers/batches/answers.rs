//! Each caller gets the answer to its own request.

use tokio::task::JoinSet;
use tollgate::{
    Algorithm, Calendar, Lockout, Quota, Standing, Store as _, StoreErrorKind, algorithm::Meter,
    store::Hit,
};

use super::{PLENTY, PREFIX, builder, hit, hold, moment, redis, take, taken, together};
use crate::{script::Model, support::RedisServer};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_caller_gets_its_own_answers_and_each_of_them_is_exact() {
    let (_server, store) = redis().await;
    let mut callers = JoinSet::new();
    for caller in 0..64 {
        let store = store.clone();
        callers.spawn(async move {
            let (key, quota) = (format!("caller{caller}"), Quota::per_day(500 + caller));
            for round in 1..=100 {
                let answer = store.acquire(&[hit(&key, quota)]).await.unwrap();
                assert_eq!(answer.standings.len(), 1);
                assert_eq!(answer.standings[0].remaining(), 500 + caller - round, "{key}");
            }
        });
    }
    callers.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_of_one_key_get_each_unit_once() {
    let (_server, store) = redis().await;
    let mut callers = JoinSet::new();
    for _ in 0..64 {
        let store = store.clone();
        callers.spawn(async move {
            let mut got = Vec::new();
            for _ in 0..20 {
                let answer = take(&store, "hot").await.unwrap();
                if answer.standings[0].fits() {
                    got.push(taken(&answer));
                } else {
                    assert_eq!(taken(&answer), 1_000);
                }
            }
            assert!(got.is_sorted(), "time goes on for each");
            got
        });
    }
    let mut got: Vec<u64> = callers.join_all().await.into_iter().flatten().collect();
    got.sort_unstable();
    assert!(got.into_iter().eq(1..=1_000));
}

#[tokio::test]
async fn who_comes_first_is_served_first() {
    let server = RedisServer::start().await;
    let store = builder(&server).connections(1).connect().await.unwrap();
    for (units, first) in [(100, "a"), (1, "b"), (63, "c"), (64, "d"), (65, "e"), (299, "f")] {
        let quota = Quota::per_day(units);
        let requests: Vec<_> = (0..300).map(|_| vec![hit(first, quota)]).collect();
        // A connection that nobody used for a while is tried first, and others may come before.
        take(&store, "warm").await.unwrap();
        let answers = together(&store, &requests).await;
        for (at, answer) in (1..).zip(answers) {
            let standing = answer.unwrap().standings[0];
            assert_eq!(
                (standing.fits(), standing.remaining()),
                (at <= units, units.saturating_sub(at))
            );
        }
    }
}

#[tokio::test]
async fn a_request_of_as_many_hits_as_there_may_be_fits_between_others() {
    let server = RedisServer::start().await;
    let store = builder(&server).connections(1).connect().await.unwrap();
    let names: Vec<String> = (0..128).map(|at| format!("k{at}")).collect();
    let all: Vec<_> = names.iter().map(|name| hit(name, PLENTY)).collect();
    let one = vec![hit("k5", PLENTY)];
    let requests = [one.clone(), all.clone(), one.clone(), all.clone(), one.clone(), all];
    let answers = together(&store, &requests).await;
    for (at, answer) in answers.into_iter().enumerate() {
        let standings = answer.unwrap().standings;
        assert_eq!(standings.len(), requests[at].len());
        let of_k5 = if standings.len() == 1 { standings[0] } else { standings[5] };
        assert_eq!(of_k5.remaining(), PLENTY.quantity() - at as u64 - 1);
    }
    let too_many: Vec<_> = names.iter().chain([&"more".to_owned()]).map(|_| one[0]).collect();
    let error = store.acquire(&too_many).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
}

#[tokio::test]
async fn all_algorithms_locks_and_shadows_stand_together_in_one_batch() {
    let (_server, store) = redis().await;
    let held = hold(&store);
    let quota = Quota::per_day(3);
    let of = |key: &'static str, algorithm: Algorithm| {
        Hit::new(key.as_bytes(), algorithm.meter(quota), 1)
    };
    let lockout = Lockout::new(std::time::Duration::from_secs(100_000)).after(2);
    let lock = Hit::new(b"lk", Meter::Lock(lockout.lock(quota)), 1);
    let bucket = of("tb", Algorithm::TokenBucket);
    let log = of("sl", Algorithm::SlidingLog);
    let counter = of("sc", Algorithm::SlidingCounter);
    let window = of("fw", Algorithm::FixedWindow);
    let month = of("month", Algorithm::Calendar(Calendar::Month));
    let shadow = |hit: Hit<'static>| Hit { shadow: true, ..hit };
    let look = |hit: Hit<'static>| Hit { cost: 0, ..hit };
    let dear = |hit: Hit<'static>| Hit { cost: 4, ..hit };
    let round = [
        vec![bucket],
        vec![bucket, log, counter],
        vec![shadow(log), window],
        vec![shadow(dear(counter)), month],
        vec![month, lock],
        vec![look(log), look(bucket)],
        vec![counter, dear(window)],
        vec![bucket, lock, shadow(month)],
    ];
    let requests: Vec<_> = (0..4).flat_map(|_| round.clone()).collect();
    let answers = together(&store, &requests).await;
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    let now = moment(&answers);
    let found = Model::default().acquire(&requests, now);
    let expected: Vec<Standing> = requests
        .iter()
        .flatten()
        .zip(&found)
        .map(|(hit, found)| found.standing(hit, now))
        .collect();
    let standings: Vec<Standing> =
        answers.iter().flat_map(|answer| answer.standings.clone()).collect();
    assert_eq!(standings, expected);
    assert!(!standings[standings.len() - 2].fits(), "it is locked in the end");
    drop(held);
}

#[tokio::test]
async fn a_key_that_holds_something_else_fails_only_its_own_requests() {
    let (server, store) = redis().await;
    let held = hold(&store);
    let key = |name: &str| format!("{PREFIX}{name}");
    server.command(&["RPUSH", &key("bad"), "something else"]);
    server.command(&["SET", &key("odd"), "something else"]);
    let of = |name: &'static str| hit(name, PLENTY);
    let log =
        |name: &'static str| Hit::new(name.as_bytes(), Algorithm::SlidingLog.meter(PLENTY), 1);
    let shadow = |hit: Hit<'static>| Hit { shadow: true, ..hit };
    let lock = Lockout::new(std::time::Duration::from_secs(100_000)).lock(PLENTY);
    let requests = [
        (vec![of("good")], true),
        (vec![of("bad")], false),
        (vec![of("other"), of("bad")], false),
        (vec![of("bad"), of("other")], false),
        (vec![of("good"), shadow(of("bad"))], true),
        (vec![of("odd")], false),
        (vec![log("odd")], false),
        (vec![of("good"), Hit::new(b"bad", Meter::Lock(lock), 1)], false),
        (vec![of("good")], true),
    ];
    let hits: Vec<_> = requests.iter().map(|(hits, _)| hits.clone()).collect();
    let answers = together(&store, &hits).await;
    let mut good = 0;
    for ((hits, answered), answer) in requests.iter().zip(answers) {
        match answer {
            Ok(answer) => {
                good += 1;
                assert!(answered);
                assert_eq!(taken(&answer), good, "{hits:?}");
            }
            Err(error) => {
                assert!(!answered, "{error}");
                assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
            }
        }
    }
    assert_eq!(server.command(&["EXISTS", &key("other")]), "0");
    drop(held);
}
