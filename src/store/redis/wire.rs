//! Requests and answers as the scripts read and write them.

use deadpool_redis::redis::Value;
use smallvec::SmallVec;

use super::{
    error,
    parameters::{self, EXACT},
};
use crate::{
    algorithm::{Meter, Reading},
    decision::{Source, Stamp, Standing},
    store::{Answer, Hit, StoreError, StoreErrorKind},
    time::Timestamp,
};

/// Whether so many refunds were made: the fault of a key that held something else is an error.
pub(super) fn refunded(value: &Value, refunds: usize) -> Result<(), StoreError> {
    let (_now, values) = answers(value, refunds)?;
    values.iter().try_for_each(|value| match value {
        Value::Int(1) => Ok(()),
        Value::BulkString(fault) => Err(error::fault(fault)),
        _ => Err(unexpected()),
    })
}

/// Whether states were forgotten, however many there were.
pub(super) fn forgotten(value: &Value) -> Result<(), StoreError> {
    match value {
        Value::Int(0..) => Ok(()),
        _ => Err(unexpected()),
    }
}

/// One request as the script wants it, and what is needed to read the answer.
pub(super) struct Request {
    /// The names of its states, one behind the other, and then the parameters of its hits.
    text: Vec<u8>,
    hits: SmallVec<[Asked; 2]>,
    /// Whether the first hit is there to deny the others, whatever they find, and is not answered.
    pub(super) barred: bool,
    /// Whether what was found is also told if the request is admitted.
    pub(super) tells: bool,
}

/// A hit.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    meter: Meter,
    cost: u64,
    shadow: bool,
    /// Where its name ends.
    name_end: usize,
}

impl Request {
    pub(super) fn new(prefix: &str, hits: &[Hit<'_>]) -> Self {
        let names: usize = hits.iter().map(|hit| prefix.len() + 1 + hit.key.len()).sum();
        let mut text = Vec::with_capacity(names + 32 * hits.len());
        let mut asked = SmallVec::new();
        for hit in hits {
            text.extend_from_slice(prefix.as_bytes());
            text.push(b':');
            text.extend_from_slice(hit.key);
            let Hit { meter, cost, shadow, .. } = *hit;
            asked.push(Asked { meter, cost, shadow, name_end: text.len() });
        }
        for (at, hit) in hits.iter().enumerate() {
            if at > 0 {
                text.push(b'+');
            }
            if hit.shadow {
                text.push(b'~');
            }
            parameters::write(&mut text, &hit.meter, hit.cost);
        }
        Self { text, hits: asked, barred: false, tells: false }
    }

    pub(super) fn hits(&self) -> &[Asked] {
        &self.hits
    }

    /// Bytes of all names and parameters.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.hits.iter().map(|hit| hit.name_end));
        starts.zip(&self.hits).map(|(start, hit)| &self.text[start..hit.name_end])
    }

    /// The parameters of all its hits, as the script wants them.
    pub(super) fn parameters(&self) -> &[u8] {
        &self.text[self.hits.last().map_or(0, |hit| hit.name_end)..]
    }

    /// What the answer to a call for this request alone comes to.
    pub(super) fn read(&self, value: &Value) -> Result<Answer, StoreError> {
        let (now, values) = answers(value, self.hits.len())?;
        self.answer(now, values)
    }

    /// What the script has found for this request, at `now`.
    pub(super) fn answer(&self, now: Timestamp, values: &[Value]) -> Result<Answer, StoreError> {
        let mut standings: SmallVec<[Standing; 2]> = SmallVec::new();
        let mut readings: SmallVec<[Reading; 2]> = SmallVec::new();
        let (mut charged, mut spared) = (false, false);
        let hits = &self.hits[usize::from(self.barred)..];
        for (hit, value) in hits.iter().zip(&values[values.len().saturating_sub(hits.len())..]) {
            let (x, rest, count) = match numbers(value) {
                Ok(numbers) => numbers,
                // What only watches is no reason to fail.
                Err(_) if hit.shadow => {
                    standings.push(UNKNOWN);
                    readings.push(Reading::default());
                    continue;
                }
                Err(error) => return Err(error),
            };
            let admitted = x >= 0;
            let x = if admitted { x } else { -1 - x }.unsigned_abs();
            let reading = parameters::reading(&hit.meter, x, rest, now);
            // A log foresees, and only a log.
            let foresees = matches!(hit.meter, Meter::SlidingLog(_));
            let reading = reading.filter(|_| foresees == (count == 3)).ok_or_else(unexpected)?;
            standings.push(hit.meter.standing(reading, hit.cost, admitted, now));
            readings.push(reading);
            charged |= admitted;
            spared |= !admitted && !hit.shadow;
        }
        let denied =
            self.barred || standings.iter().zip(hits).any(|(it, hit)| !it.fits && !hit.shadow);
        // Where all that counts fits, it was charged; else nothing was.
        let contradicts = if denied { charged } else { spared };
        if contradicts {
            return Err(unexpected());
        }
        let found = if denied || self.tells { readings.to_vec() } else { Vec::new() };
        Ok(Answer { now, source: Source::Redis, standings, found })
    }
}

/// The time of the answers to so many hits, and the answers.
pub(super) fn answers(value: &Value, hits: usize) -> Result<(Timestamp, &[Value]), StoreError> {
    let Value::Array(values) = value else { return Err(unexpected()) };
    let [Value::Int(now), values @ ..] = values.as_slice() else { return Err(unexpected()) };
    if values.len() != hits {
        return Err(unexpected());
    }
    let now = u64::try_from(*now).ok().filter(|now| *now <= EXACT).ok_or_else(unexpected)?;
    Ok((Timestamp::from_micros(now), values))
}

/// Of a shadow whose key holds something else.
pub(super) const UNKNOWN: Standing =
    Standing { fits: true, remaining: 0, wait: Some(0), reset: 0, stamp: Stamp::new(0, 0) };

/// The numbers of one hit's answer: the first one, those that may follow it, and how many there are.
fn numbers(value: &Value) -> Result<(i64, [u64; 2], usize), StoreError> {
    let number = |value: &Value| match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| unexpected()),
        _ => Err(unexpected()),
    };
    match value {
        Value::Int(x) => Ok((*x, [0, 0], 1)),
        Value::Array(values) => match values.as_slice() {
            [Value::Int(x), y] => Ok((*x, [number(y)?, 0], 2)),
            [Value::Int(x), y, z] => Ok((*x, [number(y)?, number(z)?], 3)),
            _ => Err(unexpected()),
        },
        Value::BulkString(fault) => Err(error::fault(fault)),
        _ => Err(unexpected()),
    }
}

pub(super) fn unexpected() -> StoreError {
    StoreError::new(StoreErrorKind::Unexpected, "Redis answered in a form that the script does not")
}
