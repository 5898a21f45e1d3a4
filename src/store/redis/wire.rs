//! Requests and answers as `lua/acquire.lua` reads and writes them.

use std::io::Write as _;

use deadpool_redis::redis::{Cmd, RedisWrite as _, Value};
use smallvec::SmallVec;

use super::script;
use crate::{
    algorithm::{Backlog, TokenBucket},
    decision::{Source, Standing},
    store::{Answer, Hit, StoreError, StoreErrorKind},
    time::{PICOS_PER_MICRO, Timestamp},
};

/// One request: the command that asks, and what is needed to read the answer.
pub(super) struct Request {
    evalsha: Cmd,
    hits: SmallVec<[(TokenBucket, u64); 2]>,
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
            span(&mut text, hit.bucket.increment(hit.cost));
            text.push(b' ');
            span(&mut text, hit.bucket.capacity());
            evalsha.write_arg(&text);
        }
        Self { evalsha, hits: hits.iter().map(|hit| (hit.bucket, hit.cost)).collect() }
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
        let mut standings: SmallVec<[Standing; 2]> = SmallVec::new();
        for ((bucket, cost), value) in self.hits.iter().zip(values) {
            let (backlog, admitted) = backlog(value)?;
            standings.push(bucket.standing(backlog, *cost, admitted));
        }
        let now = Timestamp::from_micros(u64::try_from(*now).map_err(|_| unexpected())?);
        Ok(Answer { now, source: Source::Redis, standings })
    }
}

/// A hit's backlog before the charge, and whether its request was admitted.
fn backlog(value: &Value) -> Result<(Backlog, bool), StoreError> {
    let (micros, picos) = match value {
        Value::Int(micros) => (*micros, 0),
        Value::Array(pair) => match pair.as_slice() {
            [Value::Int(micros), Value::Int(picos)] => (*micros, *picos),
            _ => return Err(unexpected()),
        },
        Value::BulkString(fault) => return Err(super::error::fault(fault)),
        _ => return Err(unexpected()),
    };
    let picos = u32::try_from(picos).map_err(|_| unexpected())?;
    let admitted = micros >= 0;
    let micros = if admitted { micros } else { -1 - micros };
    Ok((Backlog::new(micros.unsigned_abs(), picos), admitted))
}

/// Writes whole microseconds, and six digits of picoseconds where there are any.
fn span(text: &mut SmallVec<[u8; 64]>, picos: u128) {
    // Division is cheap in 64 bits, which hold the picoseconds of 213 days; and the microseconds of
    // whatever a quota can be.
    let (micros, picos) = match u64::try_from(picos) {
        Ok(picos) => (picos / 1_000_000, picos % 1_000_000),
        Err(_) => (
            u64::try_from(picos / PICOS_PER_MICRO).unwrap_or(u64::MAX),
            (picos % PICOS_PER_MICRO) as u64,
        ),
    };
    let mut digits = itoa::Buffer::new();
    text.extend_from_slice(digits.format(micros).as_bytes());
    if picos > 0 {
        // A digit above the six keeps their leading zeros.
        text.push(b'.');
        text.extend_from_slice(&digits.format(1_000_000 + picos).as_bytes()[1..]);
    }
}

fn unexpected() -> StoreError {
    StoreError::new(StoreErrorKind::Unexpected, "Redis answered in a form that the script does not")
}
