//! How the script is asked and what it answers, by its header, written a second time: a mistake in
//! the crate's own writer and reader does not hide here.

use tollgate::{
    Standing, Timestamp,
    algorithm::{Backlog, FullAt},
    store::Hit,
};

use super::Request;
use crate::support::Value;

/// What the script found for a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Backlog { backlog: Backlog, admitted: bool },
    Fault(String),
}

impl Found {
    /// What follows for a caller.
    ///
    /// # Panics
    ///
    /// If the key held something else.
    pub(crate) fn standing(&self, hit: &Hit<'_>) -> Standing {
        match self {
            Self::Backlog { backlog, admitted } => {
                hit.bucket.standing(*backlog, hit.cost, *admitted)
            }
            Self::Fault(fault) => panic!("{fault}"),
        }
    }
}

/// Whole microseconds, and six digits of picoseconds where there are any.
fn span(picos: u128) -> String {
    match (picos / 1_000_000, picos % 1_000_000) {
        (micros, 0) => format!("{micros}"),
        (micros, picos) => format!("{micros}.{picos:06}"),
    }
}

/// A state as the script keeps it.
pub(crate) fn text(state: FullAt) -> String {
    let (micros, picos) = state.parts();
    span(micros * 1_000_000 + picos)
}

pub(super) fn evalsha(sha: &str, batch: &[Request<'_>], more: &[String]) -> Vec<Vec<u8>> {
    let hits = batch.iter().map(Vec::len).sum::<usize>();
    let mut command = vec![b"EVALSHA".to_vec(), sha.into(), hits.to_string().into()];
    command.extend(batch.iter().flatten().map(|hit| hit.key.to_vec()));
    for request in batch {
        for (at, hit) in request.iter().enumerate() {
            let join = if at == 0 { "" } else { "+" };
            let (cost, capacity) = (hit.bucket.increment(hit.cost), hit.bucket.capacity());
            command.push(format!("{join}{} {}", span(cost), span(capacity)).into());
        }
    }
    command.extend(more.iter().map(|arg| arg.clone().into()));
    command
}

pub(super) fn answer(value: &Value) -> (Timestamp, Vec<Found>) {
    let Value::Array(values) = value else { panic!("not an answer: {value:?}") };
    let [Value::Integer(now), hits @ ..] = values.as_slice() else { panic!("no now: {value:?}") };
    let now = Timestamp::from_micros((*now).try_into().expect("a time after 1970"));
    (now, hits.iter().map(found).collect())
}

fn found(value: &Value) -> Found {
    let (micros, picos) = match value {
        Value::Text(fault) => return Found::Fault(fault.clone()),
        Value::Integer(micros) => (*micros, 0),
        Value::Array(pair) => match pair.as_slice() {
            [Value::Integer(micros), Value::Integer(picos @ 1..=999_999)] => (*micros, *picos),
            _ => panic!("not microseconds and picoseconds: {value:?}"),
        },
        _ => panic!("not what was found: {value:?}"),
    };
    let admitted = micros >= 0;
    let micros = if admitted { micros } else { -1 - micros };
    let picos = picos.try_into().expect("six digits");
    Found::Backlog { backlog: Backlog::new(micros.unsigned_abs(), picos), admitted }
}
