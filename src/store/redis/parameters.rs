//! What each algorithm is told and answers, by the headers of the files in `lua/algorithm`.

use crate::{
    algorithm::{Backlog, Counts, Denials, LogReading, Meter, Reading, Span, WindowCount},
    decision::Stamp,
    time::{PICOS_PER_MICRO, Timestamp},
};

/// Ten thousand million million: the script keeps at most 16 digits.
pub(super) const EXACT: u64 = 10_000_000_000_000_000;
/// A sliding counter keeps at most 10 digits.
const COUNT: u64 = 10_000_000_000;

/// Writes the parameters of one hit.
pub(super) fn write(text: &mut Vec<u8>, meter: &Meter, cost: u64) {
    let cost = match meter {
        Meter::TokenBucket(_) => cost,
        Meter::SlidingLog(log) => log.clamp(cost),
        Meter::SlidingCounter(counter) => counter.clamp(cost),
        Meter::FixedWindow(window) => window.clamp(cost),
        Meter::Lock(_) => cost.min(1),
    };
    write_units(text, meter, cost);
}

/// Writes those of a hit that costs so many units, as they are to be given back: also more than one request
/// can take. What is no whole number any more in a double is more than any state has.
pub(super) fn write_units(text: &mut Vec<u8>, meter: &Meter, units: u64) {
    match meter {
        Meter::TokenBucket(bucket) => {
            span(text, bucket.increment(units));
            text.push(b' ');
            span(text, bucket.capacity());
        }
        Meter::SlidingLog(log) => numbers(text, b'l', &[units, log.limit(), log.window()]),
        Meter::SlidingCounter(counter) => {
            let (window, tick) = counter.spans();
            numbers(text, b'c', &[units, counter.limit(), window, tick]);
        }
        Meter::FixedWindow(window) => {
            let limit = window.limit();
            match window.span() {
                Span::Micros(micros) => numbers(text, b'w', &[units, limit, micros]),
                Span::Calendar(calendar) => {
                    numbers(text, b'w', &[units, limit]);
                    text.push(b' ');
                    text.extend_from_slice(calendar.as_str().as_bytes());
                }
            }
        }
        Meter::Lock(lock) => {
            let (length, memory) = lock.spans();
            numbers(text, b'k', &[units, lock.after(), length, memory]);
        }
    }
}

/// What a hit found, by the numbers of its answer.
pub(super) fn reading(meter: &Meter, x: u64, rest: [u64; 2], now: Timestamp) -> Option<Reading> {
    let [y, z] = rest;
    // What the script counts is far below: a number that it cannot find is no answer of it.
    if x.max(y).max(z) > EXACT {
        return None;
    }
    Some(match meter {
        Meter::TokenBucket(_) => {
            Reading::TokenBucket(Backlog::new(x, u32::try_from(y).ok().filter(|y| *y < 1_000_000)?))
        }
        Meter::SlidingLog(_) => Reading::SlidingLog(LogReading { count: x, wait: y, reset: z }),
        Meter::SlidingCounter(_) if x.max(y) > COUNT => return None,
        Meter::SlidingCounter(counter) => {
            let start = counter.counts(None, now).0.start;
            Reading::SlidingCounter(Counts { start, current: x, previous: y })
        }
        Meter::FixedWindow(_) if y > 0 => return None,
        Meter::FixedWindow(window) => {
            Reading::FixedWindow(WindowCount { start: window.around(now).0, used: x })
        }
        Meter::Lock(_) => {
            let until = Timestamp::from_micros(now.as_micros().saturating_add(x));
            Reading::Lock(Denials { until, count: y })
        }
    })
}

fn numbers(text: &mut Vec<u8>, tag: u8, numbers: &[u64]) {
    text.push(tag);
    for (at, number) in numbers.iter().enumerate() {
        if at > 0 {
            text.push(b' ');
        }
        text.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
    }
}

/// Writes the stamp of a charge. Only that of a bucket has picoseconds.
pub(super) fn stamp(text: &mut Vec<u8>, stamp: Stamp) {
    if stamp == Stamp::LATEST {
        text.push(b'*');
        return;
    }
    let (micros, picos) = stamp.parts();
    span(text, u128::from(micros) * PICOS_PER_MICRO + u128::from(picos));
}

/// Writes whole microseconds, and six digits of picoseconds where there are any.
fn span(text: &mut Vec<u8>, picos: u128) {
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
