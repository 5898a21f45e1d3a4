//! Requests and answers as `lua/acquire.lua` reads and writes them.

use std::io::Write as _;

use deadpool_redis::redis::{Cmd, RedisWrite as _, Value};
use smallvec::SmallVec;

use super::{parameters, script};
use crate::{
    algorithm::Meter,
    decision::{Source, Standing},
    store::{Answer, Hit, StoreError, StoreErrorKind},
    time::Timestamp,
};

/// One request: the command that asks, and what is needed to read the answer.
pub(super) struct Request {
    evalsha: Cmd,
    hits: SmallVec<[(Meter, u64, bool); 2]>,
}

impl Request {
    pub(super) fn new(prefix: &str, hits: &[Hit<'_>]) -> Self {
        let keys: usize = hits.iter().map(|hit| prefix.len() + 1 + hit.key.len()).sum();
        let mut evalsha = Cmd::with_capacity(3 + 2 * hits.len(), 48 + keys + 48 * hits.len());
        evalsha.arg("EVALSHA").arg(script::sha()).arg(hits.len());
        for hit in hits {
            let mut key = evalsha.writer_for_next_arg();
            // Writing to memory does not fail.
            let _ = key.write_all(prefix.as_bytes());
            let _ = key.write_all(b":");
            let _ = key.write_all(hit.key);
        }
        for (at, hit) in hits.iter().enumerate() {
            let mut text = SmallVec::<[u8; 64]>::new();
            if at > 0 {
                text.push(b'+');
            }
            if hit.shadow {
                text.push(b'~');
            }
            parameters::write(&mut text, &hit.meter, hit.cost);
            evalsha.write_arg(&text);
        }
        Self { evalsha, hits: hits.iter().map(|hit| (hit.meter, hit.cost, hit.shadow)).collect() }
    }

    pub(super) const fn evalsha(&self) -> &Cmd {
        &self.evalsha
    }

    /// The same request with the script itself, for a server that has forgotten it.
    pub(super) fn eval(&self) -> Cmd {
        let mut eval = Cmd::new();
        eval.arg("EVAL").arg(script::SOURCE);
        for arg in self.evalsha.args_iter().skip(2) {
            if let deadpool_redis::redis::Arg::Simple(arg) = arg {
                eval.write_arg(arg);
            }
        }
        eval
    }

    pub(super) fn answer(&self, value: &Value) -> Result<Answer, StoreError> {
        let Value::Array(values) = value else { return Err(unexpected()) };
        let [Value::Int(now), values @ ..] = values.as_slice() else { return Err(unexpected()) };
        if values.len() != self.hits.len() {
            return Err(unexpected());
        }
        let now = Timestamp::from_micros(u64::try_from(*now).map_err(|_| unexpected())?);
        let mut standings: SmallVec<[Standing; 2]> = SmallVec::new();
        for ((meter, cost, shadow), value) in self.hits.iter().zip(values) {
            let (x, rest) = match numbers(value) {
                Ok(numbers) => numbers,
                // What only watches is no reason to fail.
                Err(_) if *shadow => {
                    standings.push(UNKNOWN);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let admitted = x >= 0;
            let x = if admitted { x } else { -1 - x }.unsigned_abs();
            let reading = parameters::reading(meter, x, rest, now).ok_or_else(unexpected)?;
            standings.push(meter.standing(reading, *cost, admitted, now));
        }
        Ok(Answer { now, source: Source::Redis, standings })
    }
}

/// Of a shadow whose key holds something else.
const UNKNOWN: Standing = Standing { fits: true, remaining: 0, wait: Some(0), reset: 0 };

/// The numbers of one hit's answer: the first one, and those that may follow it.
fn numbers(value: &Value) -> Result<(i64, [u64; 2]), StoreError> {
    let number = |value: &Value| match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    };
    match value {
        Value::Int(x) => Ok((*x, [0, 0])),
        Value::Array(values) => match values.as_slice() {
            [Value::Int(x), y] => Ok((*x, [number(y)?, 0])),
            [Value::Int(x), y, z] => Ok((*x, [number(y)?, number(z)?])),
            _ => Err(unexpected()),
        },
        Value::BulkString(fault) => Err(super::error::fault(fault)),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> StoreError {
    StoreError::new(StoreErrorKind::Unexpected, "Redis answered in a form that the script does not")
}
