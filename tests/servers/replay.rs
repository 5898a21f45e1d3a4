//! The real script by the server's clock, replayed in Rust by the now that it answers.

#![cfg(test)]

use std::{thread::sleep, time::Duration};

use tollgate::{RedisStore, Standing, Store as _, Timestamp, store::Answer};

use crate::{
    differential::{Kind, Trace},
    script::{Kept, Model, Modelled, SOURCE, Script},
    support::{RedisServer, Value},
};

const STEPS: usize = 50_000;
const STORE_STEPS: usize = 5_000;
/// Batches on one set of keys and quotas.
const EPOCH: usize = 20;

#[tokio::test]
async fn the_real_script_decides_stores_and_expires_as_its_now_tells() {
    let server = RedisServer::start().await;
    let mut script = Script::load(&server, SOURCE);
    let seed = fastrand::u64(..);
    let mut trace = Trace::new(seed, Kind::Mixed);
    let (mut steps, mut expired) = (0, 0);
    while steps < STEPS {
        let mut model = Model::default();
        let pool = trace.pool();
        for _ in 0..EPOCH {
            let (batch, _) = trace.batch(&pool);
            let (now, found) = script.acquire(&batch);
            let context = format!("seed {seed}, step {steps}, at {}", now.as_micros());
            assert_eq!(found, model.acquire(&batch, now), "{context}");
            for (key, state) in model.changed() {
                expired += usize::from(!check_kept(&mut script, key, state, now, &context));
            }
            steps += batch.len();
            if fastrand::bool() {
                sleep(Duration::from_micros(fastrand::u64(..2_000)));
            }
        }
        script.command(&["FLUSHDB"]);
    }
    assert!(expired > 0, "no key came to its end");
}

/// Checks what a key holds since `now`, and for how long. False if it has expired, as it may once
/// its state is a fresh one.
fn check_kept(
    script: &mut Script,
    key: &[u8],
    state: &Modelled,
    now: Timestamp,
    context: &str,
) -> bool {
    let ttl = i64::try_from(state.time_to_live(now)).unwrap();
    let expected = state.kept().without_numbers();
    let Value::Integer(left) = script.command(&[b"PTTL", key]) else { panic!("{context}") };
    let kept = script.kept(key, &expected);
    let later = time(script);
    let Some(kept) = kept else {
        assert!(state.is_fresh(later), "forgotten early; {context}");
        return false;
    };
    assert_eq!(kept.without_numbers(), expected, "{context}");
    let millis = |time: Timestamp| i64::try_from(time.as_micros() / 1_000).unwrap();
    // The server may have read its clock for the expiry a moment before the script did.
    let least = ttl - (millis(later) - millis(now)) - 1;
    assert!((least..=ttl).contains(&left) || left == -2, "{left} ms left of {ttl}; {context}");
    true
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
    let mut steps = 0;
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
                assert_eq!(standings.as_slice(), expected, "seed {seed}, step {steps}");
                steps += 1;
            }
        }
        for (key, state) in model.states() {
            let expected = state.kept().without_numbers();
            let kept = script.kept(&[b"replay:", key].concat(), &expected);
            let same = |kept: Kept| kept.without_numbers() == expected;
            assert!(kept.is_none_or(same), "seed {seed}, step {steps}");
        }
        script.command(&["FLUSHDB"]);
    }
}

#[tokio::test]
async fn the_script_under_test_is_the_one_that_the_store_loads() {
    let server = RedisServer::start().await;
    RedisStore::connect(server.url()).await.unwrap();
    assert_eq!(server.command(&["SCRIPT", "EXISTS", &sha1(SOURCE)]), "1");
}

fn sha1(source: &str) -> String {
    deadpool_redis::redis::Script::new(source).get_hash().to_owned()
}
