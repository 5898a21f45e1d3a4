//! Rust's arithmetic and the Lua scripts agree to the last unit, whatever comes.
//!
//! A step is a request. `TOLLGATE_SEED` repeats a run, and `TOLLGATE_STEPS` sets its length.

#![cfg(test)]

mod calendar;
mod meters;
mod quotas;
pub(crate) mod trace;

use tollgate::{
    Standing, Timestamp,
    store::{Hit, Refund},
};

pub(crate) use self::{
    meters::Kind,
    trace::{Charged, Trace},
};
use crate::{
    script::{Found, Joined, Kept, Model, Request, Write},
    support::{RedisServer, Value},
};

const MILLION: usize = 1_000_000;
/// Those that take longer, where nobody asks for more.
const SHORT: usize = 250_000;
const THREADS: u64 = 2;
/// Batches on one set of keys and quotas, before others take their place.
const EPOCH: usize = 200;

#[tokio::test]
async fn a_million_random_requests_are_decided_alike_in_rust_and_in_lua() {
    compare(Kind::TokenBucket, MILLION).await;
}

#[tokio::test]
async fn requests_to_all_algorithms_at_once_are_decided_alike_in_rust_and_in_lua() {
    compare(Kind::Mixed, MILLION).await;
}

#[tokio::test]
async fn requests_to_sliding_logs_are_decided_alike_in_rust_and_in_lua() {
    compare(Kind::SlidingLog, SHORT).await;
}

#[tokio::test]
async fn requests_to_sliding_counters_are_decided_alike_in_rust_and_in_lua() {
    compare(Kind::SlidingCounter, SHORT).await;
}

#[tokio::test]
async fn requests_to_fixed_windows_are_decided_alike_in_rust_and_in_lua() {
    compare(Kind::FixedWindow, SHORT).await;
}

#[tokio::test]
async fn requests_to_the_calendar_are_decided_alike_in_rust_and_in_lua() {
    compare(Kind::Calendar, SHORT).await;
}

async fn compare(kind: Kind, steps: usize) {
    let server = RedisServer::start().await;
    let (seed, steps) = settings(steps);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let mut lua = Joined::load(&server);
            lua.server().command(&["SELECT", &thread.to_string()]);
            let context = format!("{kind:?}, TOLLGATE_SEED={seed}, thread {thread}");
            let mut trace = Trace::new(seed + thread, kind);
            scope.spawn(move || run(&mut trace, &mut lua, steps / THREADS as usize, &context));
        }
    });
}

/// What a run begins with, and its length, which are as the environment says.
pub(crate) fn settings(steps: usize) -> (u64, usize) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("TOLLGATE_SEED").unwrap_or_else(|| fastrand::u64(..u64::MAX - THREADS));
    (seed, number("TOLLGATE_STEPS").map_or(steps, |steps| steps.try_into().unwrap()))
}

fn run(trace: &mut Trace, lua: &mut Joined, whole: usize, context: &str) {
    let mut steps = 0;
    while steps < whole {
        let mut model = Model::default();
        let pool = trace.pool();
        for _ in 0..EPOCH {
            let (batch, now) = trace.batch(&pool);
            let expected = model.acquire(&batch, now);
            let (found, written) = lua.acquire(&batch, now);
            let context = format!("{context}, step {steps}, at {}", now.as_micros());
            let standings = compare_answers(&batch, now, &found, &expected, &context);
            compare_writes(written, &model, now, &context);
            trace.learn(&batch, &standings);
            steps += batch.len();
            if trace.once_in(2) {
                let charged = trace.refunds();
                let now = if trace.once_in(2) { now } else { trace.tick() };
                let refunds: Vec<Refund<'_>> = charged.iter().map(refund).collect();
                model.refund(&refunds, now);
                let written = lua.refund(&refunds, now);
                compare_writes(written, &model, now, &format!("{context}, {charged:?}"));
            }
            if trace.once_in(8) {
                let key = trace.reset(&pool);
                model.reset(key.as_bytes());
                lua.server().command(&["DEL", key]);
            }
        }
        for (key, modelled) in model.states() {
            let expected = modelled.kept();
            let mut kept = lua.server().kept(key, &expected);
            if modelled.is_unnumbered() {
                kept = kept.map(Kept::without_numbers);
            }
            assert_eq!(kept, Some(expected), "kept; {context}, step {steps}");
        }
        let Value::Array(keys) = lua.server().command(&["KEYS", "{*"]) else { panic!("no list") };
        assert_eq!(keys.len(), model.states().len(), "{keys:?}, {context}");
        lua.server().command(&["FLUSHDB"]);
    }
    trace.assert_thorough(steps);
}

pub(crate) fn refund(charged: &Charged) -> Refund<'_> {
    let Charged { key, meter, units, stamp } = charged;
    Refund { key, meter: *meter, units: *units, stamp: *stamp }
}

/// Compares what was found, and all that follows from it for a caller.
fn compare_answers(
    batch: &[Request<'_>],
    now: Timestamp,
    found: &[Found],
    expected: &[Found],
    context: &str,
) -> Vec<Standing> {
    let hits: Vec<&Hit<'_>> = batch.iter().flatten().collect();
    assert_eq!(found.len(), hits.len(), "answers; {context}");
    let mut standings = Vec::new();
    for ((hit, found), expected) in hits.iter().zip(found).zip(expected) {
        assert_eq!(found, expected, "{hit:?}; {context}");
        let (standing, expected) = (found.standing(hit, now), expected.standing(hit, now));
        // Outcome, remaining, wait and reset.
        assert_eq!(standing, expected, "{hit:?}; {context}");
        standings.push(standing);
    }
    standings
}

/// Compares which keys were written, what to, and for how long.
fn compare_writes(mut written: Vec<Write>, model: &Model, now: Timestamp, context: &str) {
    let changed = model.changed().map(|(key, modelled)| Write {
        key: String::from_utf8(key.to_vec()).unwrap(),
        kept: modelled.kept(),
        until: modelled.until(now),
    });
    let mut changed: Vec<Write> = changed.collect();
    for write in &mut written {
        if model.is_unnumbered(write.key.as_bytes()) {
            write.kept =
                std::mem::replace(&mut write.kept, Kept::Log(Vec::new())).without_numbers();
        }
    }
    changed.sort();
    written.sort();
    assert_eq!(written, changed, "the keys written; {context}");
}
