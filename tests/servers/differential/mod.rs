//! Rust's arithmetic and the Lua scripts agree to the last unit, whatever comes.

#![cfg(test)]

mod quotas;
mod trace;

use tollgate::{Standing, Timestamp, store::Hit};

pub(crate) use self::trace::Trace;
use crate::{
    script::{Found, Joined, Model, Request, Write, text, time_to_live},
    support::RedisServer,
};

const STEPS: usize = 1_000_000;
const THREADS: u64 = 2;
/// Batches on one set of keys and quotas, before others take their place.
const EPOCH: usize = 200;

/// A step is a request. `TOLLGATE_SEED` repeats a run.
#[tokio::test]
async fn a_million_random_requests_are_decided_alike_in_rust_and_in_lua() {
    let server = RedisServer::start().await;
    let seed = std::env::var("TOLLGATE_SEED")
        .map_or_else(|_| fastrand::u64(..u64::MAX - THREADS), |seed| seed.parse().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let mut lua = Joined::load(&server);
            lua.server().command(&["SELECT", &thread.to_string()]);
            let context = format!("TOLLGATE_SEED={seed}, thread {thread}");
            scope.spawn(move || run(&mut Trace::new(seed + thread), &mut lua, &context));
        }
    });
}

fn run(trace: &mut Trace, lua: &mut Joined, context: &str) {
    let mut steps = 0;
    while steps < STEPS / THREADS as usize {
        let mut model = Model::default();
        let pool = trace.pool();
        for _ in 0..EPOCH {
            let (batch, now) = trace.batch(&pool);
            let expected = model.acquire(&batch, now);
            let (found, written) = lua.acquire(&batch, now);
            let context = format!("{context}, step {steps}, at {}", now.as_micros());
            let standings = compare(&batch, &found, &expected, &context);
            compare_writes(written, &model, now, &context);
            trace.learn(&batch, &standings);
            steps += batch.len();
        }
        for (key, state) in model.states() {
            assert_eq!(lua.server().get(key), Some(text(*state)), "kept; {context}, step {steps}");
        }
        lua.server().command(&["FLUSHDB"]);
    }
    trace.assert_thorough(steps);
}

/// Compares what was found, and all that follows from it for a caller.
fn compare(
    batch: &[Request<'_>],
    found: &[Found],
    expected: &[Found],
    context: &str,
) -> Vec<Standing> {
    let hits: Vec<&Hit<'_>> = batch.iter().flatten().collect();
    assert_eq!(found.len(), hits.len(), "answers; {context}");
    let mut standings = Vec::new();
    for ((hit, found), expected) in hits.iter().zip(found).zip(expected) {
        assert_eq!(found, expected, "{hit:?}; {context}");
        let (standing, expected) = (found.standing(hit), expected.standing(hit));
        // Outcome, remaining, wait and reset.
        assert_eq!(standing, expected, "{hit:?}; {context}");
        standings.push(standing);
    }
    standings
}

/// Compares which keys were written, what to, and for how long.
fn compare_writes(mut written: Vec<Write>, model: &Model, now: Timestamp, context: &str) {
    let changed = model.changed().iter().map(|(key, state)| Write {
        key: String::from_utf8(key.clone()).unwrap(),
        value: text(*state),
        ttl: time_to_live(*state, now),
    });
    let mut changed: Vec<Write> = changed.collect();
    changed.sort();
    written.sort();
    assert_eq!(written, changed, "the keys written; {context}");
}
