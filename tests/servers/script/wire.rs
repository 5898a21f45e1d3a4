//! How the script is asked and what it answers, by its header, written a second time: a mistake in
//! the crate's own writer and reader does not hide here.

use tollgate::{
    Calendar, Stamp, Standing, Timestamp,
    algorithm::{Backlog, Counts, Denials, LogReading, Meter, Reading, Span, WindowCount},
    store::{Hit, Refund},
};

use super::Request;
use crate::support::Value;

/// What the script found for a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Read { reading: Reading, admitted: bool },
    Fault(String),
}

impl Found {
    /// What follows for a caller.
    ///
    /// # Panics
    ///
    /// If the key held something else.
    pub(crate) fn standing(&self, hit: &Hit<'_>, now: Timestamp) -> Standing {
        match self {
            Self::Read { reading, admitted } => {
                hit.meter.standing(*reading, hit.cost, *admitted, now)
            }
            Self::Fault(fault) => panic!("{fault}"),
        }
    }
}

/// Whole microseconds, and six digits of picoseconds where there are any.
pub(super) fn span(picos: u128) -> String {
    match (picos / 1_000_000, picos % 1_000_000) {
        (micros, 0) => format!("{micros}"),
        (micros, picos) => format!("{micros}.{picos:06}"),
    }
}

fn parameters(meter: Meter, cost: u64) -> String {
    let below = |limit: u64| cost.min(limit + 1);
    let units = match meter {
        // One call takes no more than a thousand.
        Meter::SlidingLog(log) if cost > 1_000 => log.limit() + 1,
        Meter::SlidingLog(log) => below(log.limit()),
        Meter::SlidingCounter(counter) => below(counter.limit()),
        Meter::FixedWindow(window) => below(window.limit()),
        Meter::Lock(_) => below(0),
        _ => cost,
    };
    with_units(meter, units)
}

fn with_units(meter: Meter, units: u64) -> String {
    match meter {
        Meter::TokenBucket(bucket) => {
            format!("{} {}", span(bucket.increment(units)), span(bucket.capacity()))
        }
        Meter::SlidingLog(log) => {
            format!("l{units} {} {}", log.limit(), log.window())
        }
        Meter::SlidingCounter(counter) => {
            let (window, tick) = counter.spans();
            format!("c{units} {} {window} {tick}", counter.limit())
        }
        Meter::FixedWindow(window) => {
            let span = match window.span() {
                Span::Micros(micros) => micros.to_string(),
                Span::Calendar(Calendar::Day) => "day".to_owned(),
                Span::Calendar(Calendar::Week) => "week".to_owned(),
                Span::Calendar(Calendar::Month) => "month".to_owned(),
                other => panic!("unknown: {other:?}"),
            };
            format!("w{units} {} {span}", window.limit())
        }
        Meter::Lock(lock) => {
            let (length, memory) = lock.spans();
            format!("k{units} {} {length} {memory}", lock.after())
        }
        other => panic!("unknown: {other:?}"),
    }
}

pub(super) fn refund(sha: &str, refunds: &[Refund<'_>], more: &[String]) -> Vec<Vec<u8>> {
    let mut command = vec![b"EVALSHA".to_vec(), sha.into(), refunds.len().to_string().into()];
    command.extend(refunds.iter().map(|refund| refund.key.to_vec()));
    for refund in refunds {
        let (micros, picos) = refund.stamp.parts();
        let stamp = match refund.stamp {
            Stamp::LATEST => "*".to_owned(),
            _ => span(u128::from(micros) * 1_000_000 + u128::from(picos)),
        };
        // Also more than a request can take.
        command.extend([with_units(refund.meter, refund.units).into(), stamp.into()]);
    }
    command.extend(more.iter().map(|arg| arg.clone().into()));
    command
}

pub(super) fn evalsha(sha: &str, batch: &[Request<'_>], more: &[String]) -> Vec<Vec<u8>> {
    let hits = batch.iter().map(Vec::len).sum::<usize>();
    let mut command = vec![b"EVALSHA".to_vec(), sha.into(), hits.to_string().into()];
    command.extend(batch.iter().flatten().map(|hit| hit.key.to_vec()));
    let shapes: Vec<String> = batch.iter().map(shape).collect();
    for run in shapes.chunk_by(|one, next| one == next) {
        command.extend([run.len().to_string().into(), run[0].clone().into()]);
    }
    command.extend(more.iter().map(|arg| arg.clone().into()));
    command
}

/// The hits of a request, without their keys.
fn shape(request: &Request<'_>) -> String {
    let hit = |hit: &Hit<'_>| {
        let shadow = if hit.shadow { "~" } else { "" };
        format!("{shadow}{}", parameters(hit.meter, hit.cost))
    };
    request.iter().map(hit).collect::<Vec<_>>().join("+")
}

pub(super) fn answer(value: &Value, batch: &[Request<'_>]) -> (Timestamp, Vec<Found>) {
    let Value::Array(values) = value else { panic!("not an answer: {value:?}") };
    let [Value::Integer(now), hits @ ..] = values.as_slice() else { panic!("no now: {value:?}") };
    let now = Timestamp::from_micros((*now).try_into().expect("a time after 1970"));
    assert_eq!(hits.len(), batch.iter().map(Vec::len).sum::<usize>(), "answers, {value:?}");
    (now, batch.iter().flatten().zip(hits).map(|(hit, value)| found(value, hit, now)).collect())
}

fn found(value: &Value, hit: &Hit<'_>, now: Timestamp) -> Found {
    let integers: Vec<i64> = match value {
        Value::Text(fault) => return Found::Fault(fault.clone()),
        Value::Integer(x) => vec![*x],
        Value::Array(values) => values.iter().map(integer).collect(),
        _ => panic!("not what was found: {value:?}"),
    };
    let admitted = integers[0] >= 0;
    let x = if admitted { integers[0] } else { -1 - integers[0] }.unsigned_abs();
    let rest: Vec<u64> = integers[1..]
        .iter()
        .map(|y| u64::try_from(*y).unwrap_or_else(|_| panic!("below zero: {value:?}")))
        .collect();
    // A number that is zero is not sent.
    let y = || match rest[..] {
        [] => 0,
        [y] if y > 0 => y,
        _ => panic!("not one more number, above zero: {value:?}"),
    };
    let reading = match hit.meter {
        Meter::TokenBucket(_) => {
            assert!(y() < 1_000_000, "not picoseconds: {value:?}");
            Reading::TokenBucket(Backlog::new(x, u32::try_from(y()).expect("six digits")))
        }
        Meter::SlidingLog(_) => {
            let [wait, reset] = rest[..] else { panic!("not three: {value:?}") };
            Reading::SlidingLog(LogReading { count: x, wait, reset })
        }
        Meter::SlidingCounter(counter) => {
            let micros = now.as_micros();
            let start = Timestamp::from_micros(micros - micros % counter.spans().0);
            Reading::SlidingCounter(Counts { start, current: x, previous: y() })
        }
        Meter::FixedWindow(window) => {
            assert_eq!(y(), 0, "one number: {value:?}");
            Reading::FixedWindow(WindowCount { start: window.around(now).0, used: x })
        }
        Meter::Lock(_) => Reading::Lock(Denials {
            until: Timestamp::from_micros(now.as_micros() + x),
            count: y(),
        }),
        other => panic!("unknown: {other:?}"),
    };
    Found::Read { reading, admitted }
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(integer) => *integer,
        _ => panic!("not an integer: {value:?}"),
    }
}
