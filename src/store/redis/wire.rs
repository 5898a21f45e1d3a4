//! Requests and answers as the scripts read and write them.

use std::io::Write as _;

use deadpool_redis::redis::{Arg, Cmd, RedisWrite as _, Value};
use smallvec::SmallVec;

use super::{
    error, parameters,
    script::{ACQUIRE, REFUND, Script},
};
use crate::{
    algorithm::Meter,
    decision::{Source, Stamp, Standing},
    store::{Answer, Hit, Refund, StoreError, StoreErrorKind},
    time::Timestamp,
};

/// A command for the server.
pub(super) struct Call {
    command: Cmd,
    script: Option<&'static Script>,
}

impl Call {
    fn script<'a>(
        script: &'static Script,
        prefix: &str,
        keys: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    ) -> Self {
        let bytes: usize = keys.clone().map(|key| prefix.len() + 1 + key.len()).sum();
        let count = keys.len();
        let mut command = Cmd::with_capacity(3 + 3 * count, 48 + bytes + 72 * count);
        command.arg("EVALSHA").arg(script.sha()).arg(count);
        keys.for_each(|key| name(&mut command, prefix, key));
        Self { command, script: Some(script) }
    }

    /// Forgets states.
    pub(super) fn reset(prefix: &str, keys: &[&[u8]]) -> Self {
        let mut command = Cmd::new();
        command.arg("DEL");
        keys.iter().for_each(|key| name(&mut command, prefix, key));
        Self { command, script: None }
    }

    /// Gives back what was charged.
    pub(super) fn refund(prefix: &str, refunds: &[Refund<'_>]) -> Self {
        let mut call = Self::script(&REFUND, prefix, refunds.iter().map(|refund| refund.key));
        for Refund { meter, units, stamp, .. } in refunds {
            let mut text = SmallVec::<[u8; 64]>::new();
            parameters::write(&mut text, meter, *units);
            call.command.write_arg(&text);
            text.clear();
            parameters::stamp(&mut text, *stamp);
            call.command.write_arg(&text);
        }
        call
    }

    pub(super) const fn command(&self) -> &Cmd {
        &self.command
    }

    /// The same call with the script itself, for a server that has forgotten it.
    pub(super) fn eval(&self) -> Option<Cmd> {
        let mut eval = Cmd::new();
        eval.arg("EVAL").arg(self.script?.source());
        for arg in self.command.args_iter().skip(2) {
            if let Arg::Simple(arg) = arg {
                eval.write_arg(arg);
            }
        }
        Some(eval)
    }
}

/// Writing to memory does not fail.
fn name(command: &mut Cmd, prefix: &str, key: &[u8]) {
    let mut name = command.writer_for_next_arg();
    let _ = name.write_all(prefix.as_bytes());
    let _ = name.write_all(b":");
    let _ = name.write_all(key);
}

/// Whether a refund was made: the fault of a key that held something else is an error.
pub(super) fn refunded(value: &Value) -> Result<(), StoreError> {
    let Value::Array(values) = value else { return Err(unexpected()) };
    values.iter().skip(1).try_for_each(|value| match value {
        Value::Int(_) => Ok(()),
        Value::BulkString(fault) => Err(error::fault(fault)),
        _ => Err(unexpected()),
    })
}

/// One request: the call that asks, and what is needed to read the answer.
pub(super) struct Request {
    call: Call,
    hits: SmallVec<[(Meter, u64, bool); 2]>,
}

impl Request {
    pub(super) fn new(prefix: &str, hits: &[Hit<'_>]) -> Self {
        let mut call = Call::script(&ACQUIRE, prefix, hits.iter().map(|hit| hit.key));
        for (at, hit) in hits.iter().enumerate() {
            let mut text = SmallVec::<[u8; 64]>::new();
            if at > 0 {
                text.push(b'+');
            }
            if hit.shadow {
                text.push(b'~');
            }
            parameters::write(&mut text, &hit.meter, hit.cost);
            call.command.write_arg(&text);
        }
        Self { call, hits: hits.iter().map(|hit| (hit.meter, hit.cost, hit.shadow)).collect() }
    }

    pub(super) const fn call(&self) -> &Call {
        &self.call
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
const UNKNOWN: Standing =
    Standing { fits: true, remaining: 0, wait: Some(0), reset: 0, stamp: Stamp::new(0, 0) };

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
        Value::BulkString(fault) => Err(error::fault(fault)),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> StoreError {
    StoreError::new(StoreErrorKind::Unexpected, "Redis answered in a form that the script does not")
}
