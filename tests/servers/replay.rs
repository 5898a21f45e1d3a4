//! The real script by the server's clock, replayed in Rust by the now that it answers.

#![cfg(test)]

use std::{thread::sleep, time::Duration};

use tokio::task::JoinSet;
use tollgate::{
    Algorithm, Quota, RedisStore, Standing, Store as _, Timestamp,
    store::{Answer, Hit, Refund},
};

use crate::{
    differential::{self, Kind, Trace},
    script::{Kept, Model, Modelled, REFUND, SOURCE, Script},
    support::{RedisServer, Value},
};

const STEPS: usize = 50_000;
/// Steps between two looks at what has expired.
const STEPS_OF_A_LIFE: usize = STEPS / 10;
const STORE_STEPS: usize = 5_000;
const CALLERS: u64 = 32;
/// Batches on one set of keys and quotas.
const EPOCH: usize = 20;

#[tokio::test]
async fn the_real_script_decides_stores_and_expires_as_its_now_tells() {
    let server = RedisServer::start().await;
    let mut script = Script::load(&server, SOURCE);
    let seed = fastrand::u64(..);
    let mut trace = Trace::new(seed, Kind::Mixed);
    let (mut steps, mut expired, mut lives) = (0, 0, 0);
    while steps < STEPS {
        let mut model = Model::default();
        let pool = trace.pool();
        for _ in 0..EPOCH {
            let (batch, _) = trace.batch(&pool);
            let (now, found) = script.acquire(&batch);
            let context = format!("seed {seed}, step {steps}, at {}", now.as_micros());
            assert_eq!(found, model.acquire(&batch, now), "{context}");
            for (key, state) in model.changed() {
                check_kept(&mut script, key, state, now, &context);
            }
            steps += batch.len();
            if fastrand::bool() {
                sleep(Duration::from_micros(fastrand::u64(..2_000)));
            }
        }
        if (steps / STEPS_OF_A_LIFE) > lives {
            lives += 1;
            // The shortest lives end with the second.
            sleep(Duration::from_millis(1_001));
        }
        for (key, state) in model.states() {
            if script.kept(key, &state.kept().without_numbers()).is_none() {
                let later = time(&mut script);
                assert!(state.is_fresh(later), "forgotten early; seed {seed}, step {steps}");
                expired += 1;
            }
        }
        script.command(&["FLUSHDB"]);
    }
    assert!(expired > 0, "no key came to its end");
}

/// Checks what a key holds since `now`, and for how long. It may have expired once its state is a fresh
/// one.
fn check_kept(script: &mut Script, key: &[u8], state: &Modelled, now: Timestamp, context: &str) {
    let until = i64::try_from(state.until(now)).unwrap() * 1_000;
    let expected = state.kept().without_numbers();
    let Value::Integer(left) = script.command(&[b"PTTL", key]) else { panic!("{context}") };
    let kept = script.kept(key, &expected);
    let later = time(script);
    let Some(kept) = kept else {
        assert!(state.is_fresh(later), "forgotten early; {context}");
        return;
    };
    assert_eq!(kept.without_numbers(), expected, "{context}");
    let millis = |time: Timestamp| i64::try_from(time.as_micros() / 1_000).unwrap();
    let bounds = until - millis(later)..=until - millis(now);
    assert!(bounds.contains(&left) || left == -2, "{left} ms left of {bounds:?}; {context}");
}

fn time(script: &mut Script) -> Timestamp {
    let Value::Array(parts) = script.command(&["TIME"]) else { panic!("no time") };
    let [Value::Text(secs), Value::Text(micros)] = parts.as_slice() else { panic!("{parts:?}") };
    let number = |text: &String| text.parse::<u64>().unwrap();
    Timestamp::from_micros(number(secs) * 1_000_000 + number(micros))
}

#[tokio::test]
async fn the_store_asks_and_reads_the_script_to_the_last_unit() {
    let server = RedisServer::start().await;
    let mut script = Script::load(&server, SOURCE);
    let store = RedisStore::builder(server.url())
        .deadline(Duration::from_secs(10))
        .prefix("replay")
        .connect()
        .await
        .unwrap();
    let seed = fastrand::u64(..);
    let mut trace = Trace::new(seed, Kind::Mixed);
    let (mut steps, mut given_back) = (0, 0);
    while steps < STORE_STEPS {
        let mut model = Model::default();
        let pool = trace.pool();
        for _ in 0..EPOCH {
            for request in trace.batch(&pool).0 {
                let Answer { now, standings, .. } = store.acquire(&request).await.unwrap();
                let found = model.acquire(std::slice::from_ref(&request), now);
                let expected: Vec<Standing> = request
                    .iter()
                    .zip(&found)
                    .map(|(hit, found)| found.standing(hit, now))
                    .collect();
                let context = format!("seed {seed}, step {steps}");
                assert_eq!(standings.as_slice(), expected, "{context}");
                trace.learn(std::slice::from_ref(&request), &standings);
                steps += 1;
                if trace.once_in(4) {
                    let charged = trace.refunds();
                    let refunds: Vec<_> = charged.iter().map(differential::refund).collect();
                    let now = refund(&store, &mut script, refunds.clone()).await;
                    model.refund(&refunds, now);
                    for (key, state) in model.changed() {
                        let context = format!("{context}, given back {charged:?}");
                        check_kept(&mut script, &named(key), state, now, &context);
                        given_back += 1;
                    }
                }
                if trace.once_in(16) {
                    let key = trace.reset(&pool).as_bytes();
                    store.reset(&[key, b"absent"]).await.unwrap();
                    model.reset(key);
                    let there = script.command(&[b"EXISTS", named(key).as_slice()]);
                    assert_eq!(there, Value::Integer(0), "{context}");
                }
            }
        }
        for (key, state) in model.states() {
            let expected = state.kept().without_numbers();
            match script.kept(&named(key), &expected).map(Kept::without_numbers) {
                None => assert!(state.is_fresh(time(&mut script)), "seed {seed}, step {steps}"),
                kept => assert_eq!(kept, Some(expected), "seed {seed}, step {steps}"),
            }
        }
        script.command(&["FLUSHDB"]);
    }
    assert!(given_back * 20 > STORE_STEPS, "little was given back: {given_back}");
}

#[tokio::test]
async fn requests_that_come_at_once_are_decided_in_order_at_one_moment() {
    let server = RedisServer::start().await;
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
    let store = store.connect().await.unwrap();
    // Never polled: all that come after it wait for each other, and go out as one batch.
    let meter = Algorithm::TokenBucket.meter(Quota::per_day(1));
    let held = store.acquire(&[Hit::new(b"held", meter, 1)]);
    let seed = fastrand::u64(..);
    let mut trace = Trace::new(seed, Kind::Mixed);
    let mut steps = 0;
    while steps < STEPS {
        let mut model = Model::default();
        let pool = trace.pool();
        for _ in 0..EPOCH {
            let (batch, _) = trace.batch(&pool);
            let replies: Vec<_> = batch.iter().map(|request| store.acquire(request)).collect();
            let mut answers = Vec::new();
            for reply in replies {
                answers.push(reply.await.unwrap());
            }
            let context = format!("seed {seed}, step {steps}");
            let Some(now) = answers.first().map(|answer| answer.now) else { continue };
            assert!(answers.iter().all(|answer| answer.now == now), "{context}");
            let found = model.acquire(&batch, now);
            let expected = batch.iter().flatten().zip(&found);
            let expected: Vec<_> = expected.map(|(hit, found)| found.standing(hit, now)).collect();
            let standings: Vec<Standing> =
                answers.into_iter().flat_map(|answer| answer.standings).collect();
            assert_eq!(standings, expected, "{context}");
            trace.learn(&batch, &standings);
            steps += batch.len();
        }
        server.command(&["FLUSHDB"]);
    }
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_many_callers_is_answered_as_if_it_were_alone() {
    let server = RedisServer::start().await;
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(20));
    let store = store.connect().await.unwrap();
    let seed = fastrand::u64(..u64::MAX - CALLERS);
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let store = store.clone();
        callers.spawn(async move {
            let mut trace = Trace::new(seed + caller, Kind::Mixed);
            let mut steps = 0;
            while steps < STEPS / 2 / CALLERS as usize {
                let mut model = Model::default();
                let pool = trace.pool();
                // Keys of its own, so that only the answers' times matter.
                let own = format!("{caller},{steps}:");
                for request in (0..EPOCH).flat_map(|_| trace.batch(&pool).0) {
                    let names: Vec<Vec<u8>> =
                        request.iter().map(|hit| [own.as_bytes(), hit.key].concat()).collect();
                    let request: Vec<Hit<'_>> =
                        request.iter().zip(&names).map(|(hit, key)| Hit { key, ..*hit }).collect();
                    let Answer { now, standings, .. } = store.acquire(&request).await.unwrap();
                    let found = model.acquire(std::slice::from_ref(&request), now);
                    let expected = request.iter().zip(&found);
                    let expected: Vec<_> =
                        expected.map(|(hit, found)| found.standing(hit, now)).collect();
                    let context = format!("seed {seed}, caller {caller}, step {steps}");
                    assert_eq!(standings.as_slice(), expected, "{context}");
                    steps += 1;
                }
            }
            steps
        });
    }
    let steps: usize = callers.join_all().await.into_iter().sum();
    let info = server.command(&["INFO", "commandstats"]);
    let calls = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls: usize = calls.unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(calls * 2 < steps, "{calls} calls for {steps} requests");
}

/// The name of a key of the store.
fn named(key: &[u8]) -> Vec<u8> {
    [b"replay:", key].concat()
}

/// Gives back by the store, and tells when that was. The answer does not, but one more bucket does, of
/// which two units were taken: once the first of them is given back, it is the second that is owed,
/// from that moment on.
async fn refund<'a>(
    store: &RedisStore,
    script: &mut Script,
    mut refunds: Vec<Refund<'a>>,
) -> Timestamp {
    let key: &[u8] = b"witness";
    let meter = Algorithm::TokenBucket.meter(Quota::per_day(2));
    let hit = [Hit { key, meter, cost: 1, shadow: false, lease: 0 }];
    let stamp = store.acquire(&hit).await.unwrap().standings[0].stamp();
    assert!(store.acquire(&hit).await.unwrap().standings[0].fits());
    refunds.insert(fastrand::usize(..=refunds.len()), Refund { key, meter, units: 1, stamp });
    let before = time(script);
    store.refund(&refunds).await.unwrap();
    let after = time(script);
    let owed: u64 = script.get(&named(key)).unwrap().parse().unwrap();
    let now = Timestamp::from_micros(owed - 12 * 3_600 * 1_000_000);
    assert!((before..=after).contains(&now), "{now:?} is not when it was");
    store.reset(&[key]).await.unwrap();
    now
}

#[tokio::test]
async fn the_scripts_under_test_are_those_that_the_store_loads() {
    let server = RedisServer::start().await;
    RedisStore::connect(server.url()).await.unwrap();
    let names = [SOURCE, REFUND].map(sha1);
    assert_eq!(server.command(&["SCRIPT", "EXISTS", &names[0], &names[1]]), "1\n1");
}

fn sha1(source: &str) -> String {
    deadpool_redis::redis::Script::new(source).get_hash().to_owned()
}
